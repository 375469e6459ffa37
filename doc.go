// Package varve keeps the memory of AI agents as plain JSON files, with the
// durability of a database.
//
// # Basics
//
//	st, err := varve.Open(ctx, "./storage", nil)
//	defer st.Close()
//	m, err := st.Put(ctx, varve.Memory{Content: "prefers short answers"})
//	m, err = st.Get(ctx, m.ID)
//
// When Put has returned nil, the memory survives kill -9, a crash of the system
// and the loss of power: it is in the write-ahead log. Within a second it is a
// file, memories/<name>.json, that any program can read, and a line in
// memory_index.json. Any number of processes and goroutines may use one store at
// once; on one machine their operations are linearizable. A batch is written as
// a whole or not at all.
//
// A memory's Version is the place of its newest write in the log; it is never
// used twice. IfVersion makes a write conditional on it. Update and Transact read, change and
// write, and run again when another writer was faster.
//
// Search finds memories by words, by a vector, or by what is like another one;
// it takes the filters that Memories takes.
//
// The methods of Store are what a program needs that keeps memories. The rest is grouped:
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
// Store.Assemblies has groups of memories; they are stored, listed, edited by hand
// and looked back on as memories are. An assembly and its members never disagree: deleting a memory
// also removes it from its assemblies in the same commit, and a new embedding changes theirs in the
// same commit. Merge takes several into one.
//
// # Embeddings
//
// With Options.Embed (package vector/embed has embedders) every memory that has
// a content gets its embedding when it is written; when the embedder fails, the
// memory is stored without one and gets it later. An embedding that the store fills in leaves
// updated_at alone: this does not count as an update.
//
// All vectors are by one model at any moment. Vectors.Reembed changes it, also to another
// dimension: all new embeddings are computed first, then one entry of the log makes
// them the store's, for every process at once, then the documents are rewritten. Until
// the entry every search is answered by the old ones, from it on by the new ones. A
// process whose Options.EmbedModel is not the store's model puts without an embedding;
// Health says why, and the memories get theirs from one whose model is (ModelError).
//
// # Sessions
//
// A memory belongs to the session that its metadata.session_id names, if any. InSession
// filters reads, and confines writes: Put, Update, Delete, batches and transactions then
// touch no memory of another session (ErrSession). Store.Sessions lists sessions, deletes one
// whole, and sweeps those that are no longer used.
//
// # Limits, and what expires
//
// config.json may limit memories and bytes, of the store and of each session. A write
// that would pass a limit is refused (ErrLimit), or with at_limit the oldest memories, or
// those of the lowest score, go in the same commit. No reader ever sees more than the limit,
// however many processes write; changing a limit waits a second for the others to have read it.
// Edits by hand are adopted whatever these limits, and what the store adds by itself (embeddings
// that come later, Touch) is not held to them.
//
// A memory is absent from every read from its ExpiresAt on. It is deleted an hour or two
// later, and only if some process has seen an hour before that it was over: a clock that
// jumps and is put right within an hour deletes nothing, however often it does; see package
// internal/retention. Memories that were not written for max_age seconds go the same way,
// with one difference: no read hides them, they are there until they are deleted. ExpiresAt
// is a promise about one memory, max_age is housekeeping. Every process that has the store
// open to write sweeps, in the background, or with NoBackground in Flush and Close.
//
// # Where things are
//
// A look-up asks the overlay (what changed since the index was written, on the
// heap), then the index (mapped, searched where it lies), then reads the
// document from the log or, once flushed, from its file. See package state for
// the first two, wal for the log, index for the index, docfile for the files.
//
// # Edits by hand
//
// The files are yours. A file that was edited is found when it is next read past
// the cache, replaced, or verified. A valid edit is adopted as a new version; one
// that meets a newer version is put aside in quarantine/ with a note; one that
// is not valid stays where it is, is told once, and the version before it is served as
// far as log and archive have it; Health and Admin.RefusedEdits name it.
//
// The limits of one document (max_memory_bytes, max_depth, max_embedding_dims …) hold for
// an edit as for a put: what no Put, Update or import would take is not valid. Adopted, it
// could be read and backed up, but neither updated by any program nor taken from an
// export by another store. What is stored already is read whatever the limits are today,
// also by an index that is made again from the files.
//
// The id inside a file is the truth. A file under another name than its id's is no
// document, whether it was renamed, copied or moved into the other folder: it stays and is
// told, with where it belongs. As long as it stands with that id, the absence of the id's own
// file is not a deletion; that is put back. Give the other an id of its own, and it is
// another memory. What editors leave beside (x.json~, .x.json.swp) counts for nothing.
//
// # Caveats
//
// Get is served from a cache of documents: an edit by hand of a cached memory is
// seen once it leaves the cache or another process reads it.
//
// Times that a memory names without a zone are UTC; see Options.NaiveTimes.
//
// On file systems where locks and shared mappings are not known to work between
// processes (NFS, SMB, FUSE), one process at a time may have a store open.
//
// # Files
//
// For who changes the package; a file whose name begins with one of these, or with one
// and an underscore, is there too:
//
//	store options config errors event report            what a store is opened with, and says
//	put putall async transact cond                      writing; internal/commit makes the commits
//	get raw list filter                                 reading; internal/engine has what it rests on
//	flushing                                            from the log into files and index; internal/flush does it
//	edited                                              edits by hand; internal/edits judges them
//	history changes watch                               the past of one memory, and what everybody commits
//	sessions session usage                              sessions, what nobody uses, and how much there is
//	assemblies                                          groups of memories
//	search vectors                                      finding; comparing vectors; embedders and a change of the model
//	working                                             working memory in the store
//	admin verify repair purging backup migrate health   what internal/verify, heal, trace, copy and migrate do, and how a store is
package varve
