// Package mcpserver serves a store to agents by the Model Context Protocol. With the group graph it replaces the
// reference server, @modelcontextprotocol/server-memory (2026.8.31): a client changes only the
// command.
//
//	server := mcpserver.New(served.Only(st), mcpserver.Options{})
//	err := server.Run(ctx, mcpserver.Stdio(os.Stdin, os.Stdout, nil))
//
// # Groups of tools
//
//	memory   context remember recall update recent forget undo history. Offered by default
//	graph    create_entities create_relations add_observations delete_entities delete_observations
//	         delete_relations read_graph search_nodes open_nodes, and the resource memory://knowledge-graph
//	working  working_set working_get working_delete working_task working_note working_notes
//	         working_checkpoint working_checkpoints working_restore: the working memory of a
//	         session
//	notes    memory: the six commands of package memorytool, over the notes of the project
//
// The function groups lists them; a new group needs a line there, a function that returns its
// tools, and a text in the instructions.
//
// # Guarantees
//
//   - One call is one transaction: all of it or nothing, in one commit that survives a crash before
//     the client is answered. Calls of any number of processes on one store are linearizable; when
//     two calls add to one entity at once, both additions are kept.
//   - delete_entities also removes every relation with one of its names at an end, in the same
//     commit, including relations created concurrently (varve.Tx.AloneAmong). If other calls keep
//     creating such relations, they finally have to wait for the deletion.
//   - Entities and relations are memories like any others; package internal/graph says how they are
//     written. Members that other programs or users add to them are kept. The id is derived from
//     the name, so that finding an entity takes one look-up.
//   - Answers are in the order of creation: each entity and relation has its own nanosecond as
//     timestamp, and the timestamps of a process only increase. Those of two processes within the
//     same nanosecond are ordered by id.
//   - A graph of at most Options.GraphBytes is kept in memory. Before each answer the server
//     applies to it what all processes have committed, so that an answer shows the store at one moment. A
//     larger graph is read from the store for each answer, entity by entity. Only one change needs
//     the graph: the deletion of entities, which must find their relations. The server begins to
//     read the graph at the first message of the first client, concurrently with other work; a
//     request about the graph that comes meanwhile waits until the graph is read.
//   - A memory that cannot be read is omitted, and reported to the logger; the others are served.
//     Requests some seconds later try to read it again.
//   - Calls that a client sends without waiting for answers have the same effect as if it had
//     waited (Stdio): of calls that concern the same entities, or the whole graph, each sees the
//     effects of those before it. Others run concurrently and share a commit.
//   - A call that the client cancels is not answered (Stdio). It is done completely if it was
//     already being written to the log by then, otherwise not at all.
//   - A failed call returns its error as the result (isError), in words; it never ends the server.
//   - Subscribers of the resource are notified of changes by every process. Several changes in
//     quick succession may cause one notification.
//
// # Lines in and out (Stdio)
//
//	lines.go     reads the input, line by line
//	envelope.go  id, method and params of a line; which lines are refused
//	accept.go    a call gets a number, and its place in the order (order.go)
//	probe.go     asks the server what it accepts without the SDK
//	stdio.go     passes one message after the other to the SDK; the end of input
//	reply.go     writes answers and refusals; outlet.go writes each completely
//
// Ids. The SDK reads an id as float64, and for two equal ids in flight it clears the id in our
// request. So the SDK gets a number for each call, which is used once. The client's id is kept byte
// for byte and written with the answer and in the notifications of a listening call; in
// notifications/cancelled the SDK gets the number instead. Requests of the server to the client
// have ids of the SDK, and are passed on unchanged. Ids are equal if JSON says so (1 and 1.0, not 1
// and "1"). An id is in use until its answer is about to be written.
//
// Each line is answered, unless it is a notification or an answer to a request of the server:
//
//	-32700  not JSON; id null
//	-32600  not an object, no method, not jsonrpc 2.0, an id that is neither string nor integer
//	-32600  the id of a call that is not answered yet; the first of the two continues
//	-32600  a batch: each call in it gets this answer, an array without calls one with id null
//	-32600  more than MaxLine bytes, maxDepth levels, maxValues values, maxText bytes of text,
//	        maxRest bytes of params besides the arguments of a tool, maxID bytes of id
//	-32600  more than maxListens calls that listen
//	-32603  the resource is larger than maxAnswer; the input has ended, and the call took longer
//	        than Patience
//
// An error has the id of the call. For a line that is too long or too deep to be read, it has the
// id only if the id has at most 256 bytes, otherwise null. A refused call has no effect. A notification of more
// than 64 KiB is ignored. An answer to a request of the server that exceeds a limit, or 4 MiB, is
// returned to the caller as an error.
//
// Memory. A call that was received and is not answered is in flight. While the calls in flight have
// maxQueued bytes, plus queuedEach for each line, no further line is read; a line of more than 64
// KiB is read to its end only while all such lines in flight have at most maxLarge. So the input
// waits while answers are not read. At most maxRunning calls run at once (at most maxBig of those
// that may need much memory, and maxFree of those that need no order). Only the first inSight
// waiting calls are compared with each other. After manyNotices notifications, no more is passed to the SDK
// until the SDK has answered a ping.
// A call loads at most maxChange for a change, and calls that load more than muchBytes run one at a
// time.
//
// Large arguments bypass the SDK, which copies them four times, and so do answers of more than
// smallAnswer: the SDK gets a result with slots, which are filled piece by piece from the entities
// of the answer while it is written. An answer to a query has at most maxAnswer as JSON; a larger
// one is replaced by a result with isError that says how to request less. The answer to a call that
// wrote is always complete. Only servers made by New support this: a Stdio learns from its first
// ping whether its server does.
//
// The end. When the input ends, every call is answered before the session ends. If meanwhile
// nothing could be written for Patience, running calls are cancelled and answered with an error,
// and the session ends, whether the answers are read or not. The end of a pipe or socket is noticed
// even while the input is not being read (not on Windows: there, only when it is read).
//
// The cost of these operations grows with the size of the store (bench/MCP.md has figures): looking up an id by its
// ending lists all ids and, for a change, all deletions that the log has; the first request about the graph reads the
// whole graph.
//
// # The memory group
//
//	memory_tools.go  the tools and their arguments; strict.go reads these
//	caller.go        a connection: the id that was issued to it, its project
//	call.go          a call with its view of the store
//	hits.go          an answer as lines, one per memory
//	pages.go         cursors of recall; those of recent are in recent.go
//	timewords.go     times in a question
//
// A call reads and writes only through a project.View (package internal/project); memoryCall has no store. The function
// Options.Project returns the project of a connection. It is called before the first call, and again when the roots of
// the client have changed. A client of the protocol of 2026-07-28 does not report such changes, so it is asked for its
// roots with each call. The scopes of working memory are those of the project. The graph is in the shared part.
//
// Changes have the writer of the connection: its client and client_version are the name and the version that the client
// gave, and its session is an id that the server issued, mcp- and twelve characters. If Options.Session is set, the id
// is the writer's token instead of its session, unless the connection has a token. undo takes back only commits of this
// writer, and no commit that changed a document outside the view.
//
// A memory that remember stores has
//
//	content        the text
//	timestamp      when it happened
//	id             a UUIDv7; with a key note-<key>-<16 hex digits>, see keyed
//	metadata       session_id, category, key and tags (a list), if they were given; varve_project;
//	               superseded_by, the id of the memory that replaced this one (argument replaces); the members
//	               of the argument metadata
//	tags           "pinned": context always shows it
//	expires_at     from ttl
//
// # The file of the reference server
//
// TakeOver reads it once. The memory import:server-memory records the take-over: the path of the
// file, its size and sha256, and in metadata.aside the lines that could not be read or are too
// large, each with line, text and reason: of a long line the beginning, and of all lines together
// the first MiB. This memory is written in the last transaction of the take-over; each earlier
// transaction requires that it does not exist.
//
// # Differences from the reference server
//
// TestAsReference sends a script of calls to both servers and compares the answers one by one.
// Intended differences:
//
//   - An entity or a relation that one call names twice is created once, with all observations of
//     both, and answered once. The reference server creates it twice, and from then on
//     add_observations changes only the first of the two.
//   - An entity is one memory, at most 16 MiB as a file, which contains its observations twice:
//     larger entities are refused, and so are calls that write more than half a segment of the log.
//     A message of more than MaxLine is answered with an error; a message of more than 10 MiB ends
//     the reference server.
//   - The limits and refusals of the section on lines, maxAnswer among them; the reference server
//     sends a read_graph of any size, and rounds ids to float64.
//   - Half a surrogate pair becomes U+FFFD: a file in UTF-8 cannot contain it.
//   - serverInfo names this server; initialize also has instructions, and tools/list
//     the tools of other groups.
//   - Results of tools/list, resources/list, resources/templates/list and resources/read have ttlMs
//     and cacheScope, which the protocol of 2026-07-28 requires and older clients ignore.
//   - The text, not the code, of errors for unknown methods. A tools/call without a name is treated
//     as a call of an unknown tool.
//   - No call loses what another call wrote. A mutation that fails has no effect, and a line that
//     cannot be read does not make every call fail.
//   - Subscribers are notified of a change when it is committed, also by other processes, and not
//     notified when a call changed nothing.
package mcpserver
