// Package memorystores serves the Memory Stores API over HTTP, for the clients that know this API. A memory of
// the API is a note of a store: text at a path, with its versions.
//
//	stores, err := memorystores.Open("stores", memorystores.Options{Caller: callerOf})
//	for _, r := range stores.Routes() {
//		mux.Handle(r.Pattern, r.Handler)
//	}
//	go stores.Run(ctx)
//
// # Stores
//
// A memory store is a store in a folder below the folder that was opened. Its config.json has its id, name,
// description and metadata, and when it was archived. Only the id identifies it; the name of the folder does
// not matter: a folder may be renamed, and a store that is copied there from elsewhere is served from then on.
// A store without an id gets one. Folders whose names begin with a dot, and symbolic links, are ignored. If two
// folders have the same id, one is a copy of the other, and requests for the id are refused with the names of
// the two folders.
//
//	stores/
//	  memstore_…/           a store that was created by the API
//	  notes-of-the-team/    one that was put there
//	  .new-…/               one that is being created
//	  .trash/<folder>.<time>/   one that was deleted; removed Options.Trash later
//
// A store is opened by the first request for it, and closed when it was not used for Options.Idle. At most
// Options.MostOpen stores are open at once: opening a further one waits until one of these has no request.
// Other processes, including other servers, may use the same folder.
//
// Single serves one store that is open already.
//
// # Memories
//
// A memory is a note: /a/b.md is notes/a/b.md. What a user writes to that file is the memory's content within a
// second while the store is open, otherwise with the next request. A note of more than MostContent bytes, or
// that is not UTF-8, is listed; its content is null, and the API does not change it.
//
// The id of a memory is derived from the id of the note and the time at which the note was created. So the id
// stays the same when the path changes, and another memory at the same path has another id. The id of a version
// is its position in the log.
//
// # Versions
//
// The versions of a store are read from its log and archive once, when they are first requested; later versions
// are added as they are written. Until the store is closed, each takes about 150 bytes of memory. At most the
// 1,048,576 newest ones and an eighth more are held: older versions are not listed. A page is cut from this
// list; contents are read only with view=full. How much history a store keeps is set in its config.json
// (history_bytes, history_days).
//
// # Invariants
//
//   - A condition (precondition, expected_content_sha256) is evaluated against the version that the write replaces, and
//     the write is refused if that is not the newest one, whatever process or editor wrote it: see package varve.
//   - What was answered with 200 is durable.
//   - A token of a page names a place in the list, not a number of items: concurrent writes do not shift items between
//     pages.
//   - Nothing is written to an archived store: archiving waits for the running writes of this process; other processes
//     follow within a second.
package memorystores
