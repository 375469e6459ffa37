// Command serving measures memctl serve, as its clients see it, beside the library:
//
//	go run ./serving [-memctl PROGRAM] [-n 10000] [-size 1000] [-each 5s] [-clients 1,50] [-dir DIR]
//
// The server and the library have a store of the same notes and memories each; the server is a process of its own, on
// a loopback address, without TLS. A client makes one call after the other, by a connection that stays open. For each
// kind of call and number of clients the output has the calls a second, the median and the 99th percentile in
// milliseconds:
//
//	create   a new memory of the Memory Stores API; Notes.Write
//	get      a memory by its id; Notes.Read
//	update   another content for a memory, on condition of its hash; Notes.Update
//	list     a page of 100 memories; Notes.List, 100 entries
//	search   the tool recall of MCP; Store.Search
//
// create and update are durable when the call returns. -memctl names the program; without it, it is built.
package main
