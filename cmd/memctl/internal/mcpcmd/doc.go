// Package mcpcmd has the command memctl mcp: it serves a store to an agent on stdin and stdout, with package
// mcpserver.
//
//	serve      which store is served, and how the server ends
//	served     keeps the served store open, and opens it again if its folder was replaced
//	takeover   imports the file of the server that memctl mcp replaces
//	mark       the memory that records this import, for memctl rm and memctl purge
//	project    the project of a client
package mcpcmd
