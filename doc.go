// Package varve keeps the memory of AI agents as plain JSON files, with a write-ahead log.
//
// # Basics
//
//	st, err := varve.Open(ctx, "./storage", nil)
//	defer st.Close()
//	m, err := st.Put(ctx, varve.Memory{Content: "prefers short answers"})
//	m, err = st.Get(ctx, m.ID)
//
// When Put has returned nil, the memory survives kill -9, a crash of the system and a power failure: it is in the
// write-ahead log. Within a second it is a file, memories/<name>.json, that any program can read, and a line in
// memory_index.json. Any number of processes and goroutines may use one store at once; on one machine their operations
// are linearizable. A batch is written completely or not at all.
//
// A memory's Version is the position of its newest write in the log; no position is used twice. IfVersion makes a write
// conditional on it. Update and Transact read, change and write, and run again if another writer was faster.
//
// Search finds memories by words, by a vector, or by similarity to another memory; it takes the same filters as
// Memories.
//
// The methods of Store are what a program needs to keep memories. The rest is grouped:
//
//	Store.Assemblies   groups of memories
//	Store.Sessions     what the memories of one session have in common
//	Store.Vectors      embeddings: a change of the model, pending ones, lag of the files
//	Store.Working      working memory (package working) kept in the store
//	Store.Admin        for operators and tools: configuration, numbers, verification, the index,
//	                   purges, raw documents, positions of the log
//
// # Assemblies
//
// Store.Assemblies has groups of memories; they are stored, listed, edited by hand and versioned in the same way as
// memories. An assembly and its members always agree: deleting a memory also removes it from its assemblies in the same
// commit, and a new embedding changes theirs in the same commit. Merge combines several into one.
//
// # Embeddings
//
// With Options.Embed (package vector/embed has embedders), every memory with a content gets its embedding when it is
// written; if the embedder fails, the memory is stored without one and gets it later. An embedding that the store fills
// in does not change updated_at: this does not count as an update. VectorConfig.Template selects the text of a memory
// that is embedded, and is part of the model's name.
//
// All vectors are by one model at any moment. Vectors.Reembed changes the model, also to one of another dimension: all
// new embeddings are computed first, then one entry of the log makes them the store's, for every process at once, then
// the documents are rewritten. Searches use the old embeddings until that entry, and the new ones from then on. A
// process whose Options.EmbedModel is not the store's model puts memories without an embedding; Health says why, and a
// process with the store's model adds the embeddings (ModelError).
//
// # Sessions
//
// A memory belongs to the session that its metadata.session_id names, if any. InSession filters reads, and confines
// writes: Put, Update, Delete, batches and transactions then touch no memory of another session (ErrSession).
// Store.Sessions lists sessions, deletes a whole session, and sweeps those that are no longer used.
//
// # Limits and expiry
//
// config.json may limit memories and bytes, of the store and of each session. A write that would exceed a limit is
// refused (ErrLimit). Depending on at_limit, the oldest memories, or those with the lowest score, are deleted in the
// same commit instead. No reader ever sees more than the limit, however many processes write; a change of a limit waits
// a second until the other processes have read it. Edits by hand are adopted regardless of these limits, and what the
// store adds by itself (embeddings that come later, Touch) is not limited either.
//
// A memory is absent from every read from its ExpiresAt on. It is deleted an hour or two later, and only if some
// process saw, an hour before that, that the memory had expired: a clock that jumps and is corrected within an hour
// deletes nothing, however often it does; see package internal/retention. Memories that were not written for max_age
// seconds are deleted in the same way, with one difference: reads return them until they are deleted. ExpiresAt is a
// promise about one memory, max_age is housekeeping. Every process that has the store open to write sweeps, in the
// background, or with NoBackground in Flush and Close.
//
// # Writers
//
// With Options.Writer, each version has a writer: a number that the store issues for a description of the program, its
// process, and the agent, session and client for which it writes. WithWriter describes another writer for the calls of
// a context. Version.Writer, Change.Writer and Commit.Writer return it, and WrittenBy filters by it. Store.Log lists
// the commits, the newest first. What a program says about itself is not verified. The writer of edits by hand, and of
// versions that were written without one, is unknown.
//
// # Where data is read
//
// A look-up reads the overlay (changes since the index was written, on the heap), then the index (mapped, searched in
// place), then the document, from the log or, once flushed, from its file. See package state for the first two, wal for
// the log, index for the index, docfile for the files.
//
// # Edits by hand
//
// The files may be edited. An edit is found when the file is next read past the cache, replaced, or verified. A valid
// edit is adopted as a new version; an edit that conflicts with a newer version is put into quarantine/ with a note; an
// edit that is not valid is kept in place and reported once, and the previous version is served as long as the log or
// the archive has it; Health and Admin.RefusedEdits name it.
//
// The limits of one document (max_memory_bytes, max_depth, max_embedding_dims …) apply to an edit as to a put: a
// document that no Put, Update or import would accept is not valid. If it were adopted, it could be read and backed up,
// but no program could update it and no other store could import it from an export. Documents that are already stored
// are read whatever the current limits are, also by an index that is rebuilt from the files.
//
// The id inside a file decides. A file whose name does not match its id is not a document, whether it was renamed,
// copied or moved into the other folder: it is kept and reported with the name that it should have. As long as such a
// file has that id, the absence of the id's own file does not count as a deletion; that file is restored. With another
// id in it, the file is another memory. Files that editors leave (x.json~, .x.json.swp) are ignored.
//
// # Caveats
//
// Get is served from a cache of documents (Options.CacheBytes): an edit by hand of a cached memory is seen when the
// next index is written, when the memory leaves the cache, or once another process has read it.
//
// Times without a zone are treated as UTC; see Options.NaiveTimes.
//
// On file systems where locks and shared mappings are not known to work between processes (NFS, SMB, FUSE), one process
// at a time may have a store open.
//
// # Files
//
// For changes to the package. A file whose name begins with one of these, or with one and an underscore, belongs to the
// same part:
//
//	store readonly options config errors event report   opening a store: options, settings, results
//	put putall async transact cond                      writing; internal/commit makes the commits
//	get raw list lines filter                           reading; based on internal/engine
//	flushing                                            from the log into files and index; internal/flush does it
//	edited                                              edits by hand; internal/adopt judges them
//	history watch log undo                              the versions of a memory, and all commits
//	sessions session usage                              sessions, the sweep, and the size of the store
//	assemblies                                          groups of memories
//	notes                                               text files at paths
//	search vectors                                      search; comparing vectors; embedders and a change of the model
//	working                                             working memory in the store
//	quarantine                                          files set aside in quarantine/; internal/docfile keeps them
//	admin verify repair purging backup migrate health   internal/repairs, erase, copy; the state of the store
//	offsite                                             internal/copy/offsite: a copy elsewhere, clones of it
package varve
