// Package mcpcmd is memctl mcp: it serves a store to an agent on stdin and stdout, with package
// mcpserver.
//
//	serve      which store, and how the server ends
//	takeover   the file of the server whose place is taken
//	mark       the memory by which a take-over is known, for memctl rm and memctl purge
package mcpcmd
