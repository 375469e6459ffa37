// Package memorystores serves the Memory Stores API over HTTP: memories, which are notes of a store, at paths, with
// their versions, for the clients that know this API.
//
//	stores, err := memorystores.Open("stores", memorystores.Options{Caller: callerOf})
//	for _, r := range stores.Routes() {
//		mux.Handle(r.Pattern, r.Handler)
//	}
//	go stores.Run(ctx)
//
// # Stores
//
// A memory store is a store in a folder below the folder that was opened; its config.json has its id, its name, its
// description, its metadata, and when it was archived. The id decides, the name of the folder is free: a folder may be
// renamed, and a store put there from elsewhere is served from then on. A store without an id gets one. Folders
// whose names begin with a dot, and symbolic links, are ignored. If two folders have the same id, one is a copy
// of the other, and requests for it are refused with the names of both.
//
//	stores/
//	  memstore_…/           a store that was created by the API
//	  notes-of-the-team/    one that was put there
//	  .new-…/               one that is being created
//	  .trash/<folder>.<time>/   one that was deleted; removed Options.Trash later
//
// A store is opened by the first request for it, and closed when it was not used for Options.Idle. At most
// Options.MostOpen are open at once: another one waits until one of these has no request. Other processes, also other
// servers, may use the same folder.
//
// Single serves one store that is open already.
//
// # Memories
//
// A memory is a note: /a/b.md is notes/a/b.md. What is written to that file by hand is the memory's content within a
// second while the store is open, otherwise with the next request. A note of more than MostContent bytes, or that is no
// UTF-8, is listed; its content is null, and the API does not change it.
//
// The id of a memory is made of the id of the note and of when it was created, so it stays when the path changes, and
// another memory at the same path has another one. The id of a version is its position in the log.
//
// # Versions
//
// The versions of a store are read from its log and archive once, when they are first asked for, and are then followed.
// Until the store is closed each takes about 150 bytes of memory, of at most the 1,048,576 newest ones and an eighth
// more: older versions are not listed. A page is cut from this list; only with view=full its contents are read. The
// history of a store has the limits that its config.json says (history_bytes, history_days).
//
// # Invariants
//
//   - A condition (precondition, expected_content_sha256) is judged against the version that the write replaces, and
//     the write is refused if that is not the newest one, by whatever process or editor: see package varve.
//   - What was answered with 200 is durable.
//   - A token of a page names a place, not a number: what is written meanwhile moves nothing into another page.
//   - Nothing is written to an archived store: an archive waits for the writes that are under way in this process;
//     other processes follow within a second.
package memorystores
