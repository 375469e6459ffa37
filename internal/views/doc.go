// Package views keeps the files of plugged-in views, each in its own folder:
//
//	view_index/
//	  .gitignore     marks the folder as the store's, and has git ignore it
//	  NAME/…         of one view, in its own form; each records the moment of the
//	                 log that it covers (position and chain hash, see wal.Mark)
//
// All is the list of these views, for Open, repair and purge. A new view is a package with a
// view.View and a line in All (tests/letters is one for tests only), and:
//
//   - it is a package below internal/view, with its own place in order, in layout_test.go: behind
//     internal/engine, and before internal/views, which imports it; it may have a line in exported
//     there. Its tests are an external package that opens stores without Environment.Views (the
//     root imports it);
//   - its public API: Store gets no more methods, but an accessor can. A query is an
//     engine.Follower over view.FromFiles (tests/letters, Query);
//   - the golden traces, which then contain its files (go test ./fuzz -run Trace -update);
//   - with the first view, every store gets wal.FeatureViews when its next index is written, and
//     older programs refuse to write to it. Backups do not have that feature.
//
// The holder of flush.lock (wal.Held) brings a view up to date after each index that is written and
// before the log releases the entries of that index: Load, Apply for each entry between the moment
// of the files and that of the index, Save. Files that are missing, damaged, of another log, or so
// old that log and archive do not reach back to them, are made from the index: Reset, Save. An
// error is reported as an event, and nothing waits for it: the index is authoritative, and the next
// round starts again. So views never stop a flush, and never keep the log from being released.
//
// This package does the following for every view:
//
//   - A rebuilt index may differ for the same moment, so the files are removed before the index is
//     rebuilt (Rebuilding).
//   - A purge opens all files (Doom), and overwrites them once they are replaced. Only these files
//     contain a view's data of a purged document.
//   - A program that does not know this folder would leave purged words in it: before the first
//     file is written wal.FeatureViews is raised, after which no such program writes. A folder of a
//     view that this program does not know is removed whenever all views are removed.
//   - verify compares files with an index of the same moment; repair rebuilds them.
//   - A backup has no views, and a restored store rebuilds them. A migration moves the folder with
//     the others.
//
// Counts, vectors and scopes, below internal/view, are not on the list. Counts has no files. The
// index names the vectors' files, which are written before the index is put in place, because a
// search must never see an index whose vectors are missing. The files of scopes are the
// authoritative copy of working memory, as a memory's file is of the memory, and not derived.
package views
