// Package undo takes back what commits did, by one commit that puts every document back as it was.
//
// # What is taken back
//
// A selection is one commit, or the commits of a writer since a time; see select.go. Of each document that they
// changed, the log from the first of them on is read (scan.go) as a tree of states: a version follows the state that
// it replaced, except that the version of an undo is the state that the undo put back. So what was taken back before
// is not taken back again, and what an undo of the undo has brought back is what it was.
//
// From its newest state a document goes back over what the selection made (plan.go). Upkeep that follows, such as a
// count of accesses or an embedding, goes along. Where another version is the newest, or lies between, others have
// built upon what is to be taken back: that is a Conflict. So are a predecessor that is kept nowhere or was purged,
// and a document that others rest on: an assembly that is not taken back has it as a member, or it would name a
// memory that is gone. A plan has all of them. Without Options.Partial an undo that has conflicts changes nothing.
//
// Expiries are not taken back with the other commits of a writer, because the process that happened to remove what
// was over did not decide it: only by the position of the commit. Working memory is not taken back; the plan names it.
//
// # Commits
//
// An undo is one commit, on the condition that each document still has the version of the plan; if one has not, there
// is another plan (apply.go). The entries have the cause undo and the version that they put back (package
// segment, field 4). Beyond half a segment an undo is several commits. Then they are by a writer of their own
// (package writer), whose member undo is a JSON object that identifies the undo:
//
//	{"position":N,        of the commit that is taken back
//	 "run":"…",           or the writer whose commits are
//	 "since":"…",         from this time on
//	 "before":N,          and before this position
//	 "partial":true}      without what has conflicts
//
// All entries but those of the last commit have the cause undoing. So a process that selects the same finds, by the
// newest commit of that undo, that it was interrupted, and continues it with what the plan now has; so does an undo
// of the last commit of the caller, if that is a part of such an undo. Commits behind "before" are not taken back by
// the continuation, also those of the same writer. What was put back already is no part of the new plan.
//
// Memories are put back first, then assemblies are put back or deleted, then memories are deleted, so an assembly
// has its members between two commits. An assembly that changes along with a memory of an earlier commit is written
// by that, as upkeep.
//
// The package calls packages engine and commit, and reads the log and its archive by package wal/past. It calls
// nothing back.
package undo
