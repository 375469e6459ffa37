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
//     survives a crash before the client hears of it. Calls of any number of
//     processes on one store are linearizable; what two add to one entity at once
//     is there, both.
//   - delete_entities takes every relation with one of its names at an end along, in the
//     same commit, whoever makes more of them meanwhile (graph.AloneAt). Where others make
//     them faster than that can be done it says so in the end, and has deleted nothing.
//   - Entities and relations are memories like any others; package internal/graph
//     says how they are written. Members that other programs or people add to them
//     stay. The id follows from the name, so that a look-up is one look-up.
//   - Answers are in the order of creation: each entity and relation has its own
//     nanosecond as timestamp, and a process never goes back. Those of two
//     processes within the same nanosecond are ordered by id.
//   - The graph is kept in memory, up to Options.GraphBytes, and before each answer
//     brought up to what every process has committed, so that an answer is of one
//     moment; beyond that it is read from the store, entity by entity. Writes never
//     need it but for the relations of deleted entities. It is read at the first
//     message of the first client, beside what else goes on; a question that comes
//     before it is there waits for it.
//   - A memory that cannot be read is left out, and reported to the logger; the
//     others are served. It is tried again by questions that come some seconds later.
//   - What a client sends without waiting for answers is as if it had waited (Stdio):
//     of calls that concern the same entities, or the whole graph, each sees what those
//     before it did. Others run at once and share a commit.
//   - A call that a client gives up is not answered (Stdio). Nothing of it is done if it was
//     not on its way to the log by then, else all of it.
//   - What is wrong with a call is its result (isError), in words; it never ends the
//     server. Stdio passes over lines that are no message, and answers all that
//     came in before the end of the input.
//   - Subscribers of the resource hear of changes by every process. Several that come
//     close to each other may be told of once.
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
