// Package kind defines the differences between the kinds of documents that a store keeps in
// files of their own, memories and assemblies: the letter of their keys in the log, their section
// of the index, their folder, how one is read. Code that works on any document takes a Kind and
// needs nothing else.
//
// Working memory is a kind for purge only: a scope has a file, but no line in the index, and the
// log has its changes. Replay applies them to the file.
//
// Stored documents are read with wider limits than those of config.json, which are for writing.
package kind
