// Package store composes an open store: it builds every part with its constructor, opens the log, starts
// the background work, and closes everything in order. It is the only place that knows all the parts.
//
// A part gets the parts that it depends on as parameters of its constructor, from the bottom up:
//
//	env, settings          where the store is, and its configuration
//	engine                 log, state, kinds, cache
//	vectors, counts, views data derived from the log
//	rebuilder, flusher     files, index and views
//	scopes                 working memory
//	committer, adopter     commits, and the adoption of edits by hand
//	embedding              vectors of an embedder
//	retention, history     deletion by age and limits, and the versions that are kept
//	purger, search
//
// Some parts call upwards: the engine has edited files judged, the flusher has the files judged that a
// round set aside, the committer asks the embedder which vectors it accepts. These calls are the Host
// interfaces of their packages, and host implements them all. host calls a part only when the store is
// open or being opened, and by then every part exists.
package store
