// Package view says what a view is, and what it says of itself. A view is what a store derives
// from its log and its documents: vectors, counts, working memory, and those that plug in (see
// internal/views).
//
// Fold is what a view does with an entry; engine.Follower keeps one at what a process knows.
// View is a Fold with files, which lie in a Folder.
//
// Source is an open store as what compares a view with the log and the documents sees it; what
// is found is a repair.Finding. That type, and the traces of a purge (internal/trace), stay where
// they are: repair is public, and an alias from there into this package would show no fields.
package view
