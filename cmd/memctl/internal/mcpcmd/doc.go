// Package mcpcmd is memctl mcp: it serves a store to an agent on stdin and stdout, with package
// mcpserver.
//
//	serve      which store, and how the server ends
//	takeover   the file of the replaced server
//	mark       the memory that records a take-over, for memctl rm and memctl purge
package mcpcmd
