// Command mcp compares memctl mcp with the MCP reference memory server, as a client
// sees them: one process each, one call after the other over stdin and stdout, on the
// same graph. ../MCP.md has its results and the command.
package main
