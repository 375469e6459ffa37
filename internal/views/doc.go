// Package views maintains the files of plugged-in views, each in its own folder:
//
//	view_index/
//	  .gitignore     marks the folder as the store's, and makes git ignore it
//	  NAME/…         the files of one view, in its own format; each view records the log
//	                 position that it covers (position and chain hash, see wal.Mark)
//
// All is the list of these views, for Open, repair and purge. To add a view, add a package with a view.View and a line
// in All (tests/letters is a view for tests only), and follow these rules:
//
//   - The package is below internal/view, and has a place in order in layout_test.go: after internal/engine, and before
//     internal/views, which imports it. It may have a line in exported there. Its tests are an external package that
//     opens stores without Environment.Views (the root imports it).
//   - Store gets no more methods for its public API, but an accessor may. A query is an engine.Follower over
//     view.FromFiles (tests/letters, Query).
//   - The golden traces contain the view's files (go test ./fuzz -run Trace -update).
//   - With the first view, every store gets wal.FeatureViews when its next index is written, and older programs refuse
//     to write to it. Backups do not have that feature.
//
// The holder of flush.lock (wal.Held) updates a view after each index is written and before the log releases the
// entries of that index: Load, Apply for each entry between the position of the files and that of the index, Save.
// Files that are missing, damaged, of another log, or too old for log and archive to reach back to them, are rebuilt
// from the index: Reset, Save. An error is reported as an event and delays nothing: the index is authoritative, and the
// next round tries again. So views never stop a flush, and never delay the release of the log.
//
// This package does the following for every view:
//
//   - A rebuilt index may differ for the same log position, so the files are removed before the index is rebuilt
//     (Rebuilding).
//   - A purge opens all files (Doom), and overwrites them once they are replaced. Only these files contain a view's
//     data of a purged document.
//   - A program that does not support views would leave purged words in this folder. So wal.FeatureViews is raised
//     before the first file is written, after which no such program writes. A folder of a view that this program does
//     not have is removed whenever all views are removed.
//   - verify compares files with an index of the same position; repair rebuilds them.
//   - A backup has no views, and a restored store rebuilds them. A migration moves the folder with the others.
//
// Counts, vectors and scopes, below internal/view, are not on the list. Counts has no files. The index names the files
// of vectors, which are written before the index is replaced, because a search must never see an index whose vectors
// are missing. The files of scopes are the authoritative copy of working memory, not derived data.
package views
