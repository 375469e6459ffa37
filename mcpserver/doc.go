// Package mcpserver offers a store to agents by the Model Context Protocol. It
// takes the place of the reference server, @modelcontextprotocol/server-memory
// (2026.8.31), for which a client changes nothing but the command.
//
//	server := mcpserver.New(st, mcpserver.Options{})
//	err := server.Run(ctx, mcpserver.Stdio(os.Stdin, os.Stdout, nil))
//
// # Groups of tools
//
//	graph    create_entities create_relations add_observations delete_entities delete_observations
//	         delete_relations read_graph search_nodes open_nodes, and the resource memory://knowledge-graph
//	memory   remember recall forget list_memories
//	working  working_set working_get working_delete working_task working_note working_notes
//	         working_checkpoint working_checkpoints working_restore: the working memory of a
//	         session. Offered only where it is named (memctl mcp --tools graph,memory,working)
//
// groups lists them; one more group is one more line there, a function that gives
// its tools, and what the instructions say of it.
//
// # What holds
//
//   - One call is one transaction: all of it or nothing, in one commit that
//     survives a crash before the client is answered. Calls of any number of
//     processes on one store are linearizable; what two add to one entity at once
//     is there, both.
//   - delete_entities also removes every relation with one of its names at an end, in the same
//     commit, even those made meanwhile (varve.Tx.AloneAmong). Where others make them faster than that
//     can be done it says so in the end, and has deleted nothing.
//   - Entities and relations are memories like any others; package internal/graph
//     says how they are written. Members that other programs or people add to them
//     stay. The id follows from the name, so that a look-up is one look-up.
//   - Answers are in the order of creation: each entity and relation has its own
//     nanosecond as timestamp, and a process never goes back. Those of two
//     processes within the same nanosecond are ordered by id.
//   - The graph is kept in memory, up to Options.GraphBytes, and before each answer
//     brought up to what every process has committed, so that an answer is of one
//     moment; beyond that it is read from the store, entity by entity. Writes never need it except
//     for the relations of deleted entities. It is read at the first message of the first client,
//     concurrently with other work; a request that comes before it is complete waits for it.
//   - A memory that cannot be read is left out, and reported to the logger; the
//     others are served. It is tried again by questions that come some seconds later.
//   - What a client sends without waiting for answers is as if it had waited (Stdio):
//     of calls that concern the same entities, or the whole graph, each sees what those
//     before it did. Others run at once and share a commit.
//   - A call that a client gives up is not answered (Stdio). Nothing of it is done if it was
//     not on its way to the log by then, else all of it.
//   - What is wrong with a call is its result (isError), in words; it never ends the
//     server.
//   - Subscribers of the resource are told of changes by every process. Several that come
//     close to each other may be told of once.
//
// # Lines in and out (Stdio)
//
//	lines.go     reads the input, line by line
//	envelope.go  id, method and params of a line; what is refused
//	accept.go    a call gets a number, and its place in the order (order.go)
//	probe.go     asks the server what it takes past the SDK
//	stdio.go     gives the SDK one message after the other; the end
//	reply.go     writes answers and refusals; outlet.go writes them whole
//
// Ids. The SDK reads an id as float64, and for two equal ids in flight it clears the id in our
// request. So it gets a number for each call, which is used once. The id stays as it came, byte
// for byte, and is written so in front of the answer, in what a listening call is told, and not
// in notifications/cancelled: there the SDK gets the number. Requests of the server to the
// client have ids of the SDK, and pass as they are. Ids are equal if JSON says so (1 and 1.0,
// not 1 and "1"). An id is in use until its answer is about to be written.
//
// Each line is answered, unless it is a notification or an answer to a request of the server:
//
//	-32700  no JSON; id null
//	-32600  no object, no method, not jsonrpc 2.0, an id that is neither string nor integer
//	-32600  the id of a call that is not answered yet; the first of the two continues
//	-32600  a batch: each call in it gets this answer, an array without calls one with id null
//	-32600  more than MaxLine bytes, maxDepth levels, maxValues values, maxText bytes of text,
//	        maxRest bytes of params besides the arguments of a tool, maxID bytes of id
//	-32600  more than maxListens calls that listen
//	-32603  the resource is larger than maxAnswer; the input has ended, and the call took longer
//	        than Patience
//
// The id of an error is the call's, also of a line that is too long or too deep to be read, if
// the id has at most 256 bytes there; else null. Nothing of what is refused was done. A
// notification of more than 64 KiB is passed over. An answer to a request of the server that is
// beyond a limit, or has more than 4 MiB, is an error to the caller.
//
// Memory. What has come in and is not answered counts as in flight. No line is read beyond
// maxQueued bytes, with queuedEach more for each line; one of more than 64 KiB is read to its end
// when all such in flight are at most maxLarge. So the input waits while answers are not read.
// At most maxRunning calls run at once (maxBig of those that may need much memory, and maxFree
// of those that no order holds for). Only the first inSight that wait are compared with each
// other. Notifications wait for a ping after each manyNotices. A call loads at most maxChange to
// change it, and one at a time of those that load more than muchBytes.
//
// Large arguments go past the SDK, which copies them four times, and so do answers of more than
// smallAnswer: the SDK gets a result with slots, which are filled while it is written, piece by
// piece, from the entities that it tells of. An answer to a question is at most maxAnswer as
// JSON; a larger one is a result with isError that says how to ask for less. What a call has
// written is told whole. Only a server of New takes part: a Stdio learns from its first ping
// whether its server does.
//
// The end. When the input ends, every call is answered before the session ends. When for Patience
// nothing could be written meanwhile, what is under way is cancelled and answered with an error,
// and the session ends, whether the answers are read or not. The end of a pipe or socket is also
// seen while the input is not read (not on Windows: there, only once it is read).
//
// What costs with the store's size: recall and remember's look for near-duplicates go
// over every text that passes their filters (bench/MCP.md has figures); the first question
// about the graph reads all of it.
//
// # Memories of the memory group
//
//	content       the text
//	id            a UUIDv7; with a key note-<32 hex digits>, see keyed
//	metadata      session_id, category, key, tags (a list), where they were given
//	expires_at    from ttl
//
// # The file of the reference server
//
// TakeOver reads it once. The memory import:server-memory says that it was, from
// where, with size and sha256, and holds in metadata.aside the lines that could not
// be read or are too large, each with line, text and reason: the beginning of a long
// one, and the first MiB of all. It is written in the last transaction of the
// take-over; each one before it holds only while it is not there.
//
// # Differences from the reference server
//
// A script of calls is answered by both, answer by answer (TestAsReference). What
// differs, by intention:
//
//   - An entity or a relation that one call names twice is created once, with all
//     observations of both, and answered once. There it is created twice, and from
//     then on add_observations changes the first of the two alone.
//   - An entity is one memory, 16 MiB at most as a file, in which its observations stand
//     twice: what would be larger is refused, and so is what one call writes beyond half a
//     segment of the log. A message of more than MaxLine is answered with an error; there
//     one of more than 10 MiB ends the server.
//   - The limits and refusals of the section on lines, maxAnswer among them; there a read_graph
//     is sent whole however large, and an id is rounded to a float64.
//   - Half a surrogate pair is U+FFFD: a file in UTF-8 cannot hold it.
//   - serverInfo names this server; initialize also has instructions, and tools/list
//     the tools of other groups.
//   - Results of tools/list, resources/list, resources/templates/list and
//     resources/read have ttlMs and cacheScope, which the protocol of 2026-07-28
//     wants and older clients pass over.
//   - The text, not the code, of errors for methods that are not there. A tools/call
//     without a name is one of a tool that is not there.
//   - No call loses what another one wrote. A mutation that fails half way leaves
//     nothing behind, and a line that cannot be read does not fail every call.
//   - A change is told to subscribers when it is committed, also by other processes,
//     and not told when a call changed nothing.
package mcpserver
