// Package view defines the interface of a view. A view is data that a store derives from its log
// and its documents: vectors, counts, working memory, and plugged-in views (see internal/views).
//
// A Fold processes entries; engine.Follower keeps a Fold up to date with what a process knows. A
// View is a Fold with files in a Folder.
//
// Source is an open store as needed to compare a view with the log and the documents; a difference
// is a repair.Finding. That type, and the traces of a purge (internal/erase/trace), are not in this
// package: repair is public, and an alias from there into this package would show no fields.
package view
