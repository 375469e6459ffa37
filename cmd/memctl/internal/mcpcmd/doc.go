// Package mcpcmd has the command memctl mcp: it serves a store to an agent on stdin and stdout,
// with package mcpserver.
//
//	serve      which store is served, and how the server ends
//	served     a store that is open as long as a server runs, whatever becomes of its folder
//	takeover   the file of the replaced server
//	mark       the memory that records an import, for memctl rm and memctl purge
package mcpcmd
