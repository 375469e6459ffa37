// Package server serves a store over HTTP: to agents on other machines by the Model Context Protocol, to clients of the
// Memory Stores API, to a web page, and to monitoring.
//
//	tokens, err := server.OpenTokens("tokens.json")
//	s, err := server.New(served.Only(st), server.Options{Tokens: tokens})
//	err = s.Serve(ctx, listener)
//
// # Paths
//
//	POST /mcp   the Model Context Protocol: stateless, of 2026-07-28 and of the versions from 2025-03-26 on; with the
//	            tools of package mcpserver. GET and DELETE are answered with 405, since there is no session.
//	POST /mcp/ID   of a server of Options.MemoryStores alone: MCP of the memory store with this id; /mcp is that of the
//	            only store that the token may use
//	/v1/…       the Memory Stores API, see package memorystores, with Options.MemoryStores
//	GET /healthz   200 while the server runs
//	GET /readyz    200 while the store can be read and written, otherwise 503 with the reason
//	GET /metrics   what Options.Metrics answers; 404 without it
//	GET /, /static/…   the page (Options.Page; 404 without it), which has nothing of the store
//	/page/…, GET /stream   what the page shows, for tokens with "page"; see package server/page
//	GET /.well-known/oauth-protected-resource   that the server wants a bearer token (RFC 9728)
//
// # Tokens
//
// Each request to /mcp, /v1/ and /metrics presents a token, in the header Authorization (Bearer …) or in x-api-key,
// also on a loopback address: a port there is open to every user of the machine. A token has a name, which history
// shows as the writer's; it may be restricted to reading, and to groups of tools. The file of tokens has only the
// SHA-256 of each, in JSON:
//
//	{"version":1,
//	 "tokens":[{"name":"laptop",          1 to MostName bytes, without control characters; unique in the file
//	            "sha256":"<64 digits>",   of the token
//	            "read_only":true,         omitted if it is false
//	            "tools":["memory"],       groups of tools (mcpserver.Groups); omitted if all are allowed
//	            "stores":["memstore_…"],  ids of memory stores that it may use; omitted if all are allowed
//	            "page":true,              the page may be used; omitted if it is false
//	            "created":"…"}]}          RFC 3339
//
// The file must belong to the user of the server, and others must not be able to write it. It is read again when it
// changes: a token that was removed ends its requests within a second. While the file cannot be read, every token
// of it is refused with 503.
//
// # What a request must pass
//
// In this order: the number of requests under way is below Options.Requests (503); the Host header is that of the
// server, which web pages of other sites cannot arrange on a loopback address (403); an Origin header, if there is
// one, is that of the server (403); the token is valid (401), and permits the request (403). No answer has a header
// that lets a web page of another site read it (CORS).
//
// The answer to a wrong token comes after FailureDelay. While MostFailures of these wait, further requests without a
// valid token are refused at once (429), so the number of guesses a second is bounded.
//
// At most Options.Connections are open: beyond that, the connection that has waited longest for a request is closed.
// Headers have at most 64 KiB and must come within 10 s; a body has at most Options.Body bytes. A request ends
// after Options.Timeout, except calls that listen for changes. Each request is logged in a line, without any content.
//
// # End
//
// When the context of Serve ends, the server accepts no more connections, lets the requests that are under way finish
// for Options.Drain, and ends the others. A write that was answered is durable: see package varve.
package server
