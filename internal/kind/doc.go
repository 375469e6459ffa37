// Package kind defines the differences between the kinds of documents that a store keeps in
// files of their own, memories, assemblies and notes: the letter of their keys in the log, their section
// of the index, their folder and the paths in it, how one is read. Code that works on any document takes a Kind and
// needs nothing else.
//
// The files of a kind are JSON in one folder (memories, assemblies), or are named by Kind.Paths: files
// with any extension, in real folders below Kind.Folder. The documents of an opaque kind are the bytes
// of their files, which may be empty: they contain neither their id, which follows from the path
// (Kind.IDAt gives Decode the id), nor their times, which are those of the commit, or of the file if
// nothing else is known. An edit of such a file always replaces the newest version, which stays in the
// history, even if the edit was made from an older one.
//
// If paths have folders, a document that cannot be beside another one is refused (Beside): a and a/b,
// and paths that differ only in what a kind compares as equal (Folding), such as case. This applies to
// documents that are put, to new files, and to an index that is rebuilt from the files; a file that is
// refused stays where it is, and verify names it. docfile.CheckPath has the limits on a path.
//
// A store has a kind with a Feature (notes) only once it has had a document of it: the first commit
// creates the folder, and then sets the feature. A feature without a folder means that the folder was
// removed.
//
// Working memory is a kind for purge only: a scope has a file, but no line in the index, and the
// log has its changes. Replay applies them to the file.
//
// Stored documents are read with wider limits than those of config.json, which are for writing.
package kind
