// Package kind defines the differences between the kinds of documents that a store keeps in
// files of their own, memories, assemblies and notes: the letter of their keys in the log, their section
// of the index, their folder and the paths in it, how one is read. Code that works on any document takes a Kind and
// needs nothing else.
//
// The files of a kind are JSON in one folder (memories, assemblies), or what Kind.Paths says: real folders
// below Kind.Folder, with any extension. The documents of an opaque kind are the bytes of their files, which may be
// empty: they say neither their id, which is that of the path (Kind.IDAt gives Decode the id), nor their times, which
// are those of the commit, or of the file if that is all there is. An edit of such a file is never made of an older
// version: it replaces the newest one, which stays in the history.
//
// Where paths have folders, a document is refused that cannot be beside another one (Beside): a and a/b, and paths
// that differ only in what a kind compares as equal (Folding), such as case. This holds for what is put, for files
// that appear, and for an index that is rebuilt from the files; a file that is refused stays where it is, and verify
// names it. The limits on a path are those of docfile.CheckPath.
//
// A store has a kind with a Feature (notes) only once it has had a document of it: the first commit makes the folder,
// and then raises the feature. A feature without a folder means that the folder was removed.
//
// Working memory is a kind for purge only: a scope has a file, but no line in the index, and the
// log has its changes. Replay applies them to the file.
//
// Stored documents are read with wider limits than those of config.json, which are for writing.
package kind
