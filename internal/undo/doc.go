// Package undo undoes commits, by one commit that restores every document to its previous state.
//
// # What is undone
//
// A selection is one commit, or the commits of a writer since a time; see select.go. The log from the
// first of them on is read (scan.go), for each document that they changed, as a tree of states: a
// version follows the state that it replaced, except that the version of an undo is the state that the
// undo restored. So a change that was undone before is not undone again, and a version that an undo of
// the undo has restored is the original state.
//
// The plan goes back from the newest state of a document over the states that the selection made
// (plan.go). Upkeep that followed, such as a count of accesses or an embedding, is undone as well. If
// another version is the newest, or is in between, others have changed the document since: that is a
// Conflict. So are a previous version that is kept nowhere or was purged, and a document that others
// depend on: a memory that is a member of an assembly which is not undone, or an assembly that would
// name a memory which is gone. A plan lists all conflicts. Without Options.Partial an undo that has
// conflicts changes nothing.
//
// Expiries are not undone with the other commits of a writer, because the process that happened to
// remove the expired memories did not decide it: they are undone only by the position of the commit.
// Working memory is not restored; the plan names the scopes.
//
// # Commits
//
// An undo is one commit, on the condition that each document still has the version of the plan; if one
// has not, a new plan is made (apply.go). The entries have the cause undo and the version that they
// restore (package segment, field 4). An undo larger than half a segment is made in several commits.
// These are by a writer of their own (package writer), whose member undo is a JSON object that
// identifies the undo:
//
//	{"position":N,        of the commit that is undone
//	 "run":"…",           or the writer whose commits are
//	 "since":"…",         from this time on
//	 "before":N,          and before this position
//	 "partial":true}      without what has conflicts
//
// All entries except those of the last commit have the cause undoing. So a process that selects the same
// commits finds, by the newest commit of that undo, that it was interrupted, and continues it with a new
// plan; so does an undo of the last commit of the caller, if that is a part of such an undo. The
// continuation does not undo commits behind "before", even of the same writer. What was already restored
// is not part of the new plan.
//
// Memories are restored first, then assemblies are restored or deleted, then memories are deleted, so
// that an assembly has its members between two commits. If restoring a memory in an earlier commit changes
// an assembly, that commit writes the assembly too, as upkeep.
//
// The package calls packages engine and commit, and reads the log and its archive through package
// wal/past. It makes no callbacks.
package undo
