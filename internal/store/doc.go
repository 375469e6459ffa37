// Package store composes an open store: it builds every part with its constructor, opens the log, starts what runs in
// the background, and closes all of it in order. It is the only place that knows all the parts.
//
// A part gets what it works on as parameters of its constructor, from the ground up:
//
//	env, settings          where the store is, and what it is told to do
//	engine                 log, state, kinds, cache
//	vectors, counts, views what is derived of the log
//	rebuilder, flusher     files, index and views
//	scopes                 working memory
//	committer, adopter     what is written, and what was written into the files by hand
//	embedding              vectors of an embedder
//	retention, history     what is deleted by age and limits, and the versions that are kept
//	purger, search
//
// Some parts call upwards: the engine has an edited file judged, the flusher has the files that a round set aside
// judged, the committer asks the embedder which vectors suit. These calls are the interfaces Host of their packages,
// and host implements them all. A host calls a part only when the store is open or being opened, and by then every part
// exists.
package store
