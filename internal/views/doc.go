// Package views keeps the files of the views that plug in, each in its own folder:
//
//	view_index/
//	  .gitignore     says that the folder is the store's, and has git ignore it
//	  NAME/…         of one view, in a form of its own; each says as of which moment of the
//	                 log it is (position and chain hash, see wal.Mark)
//
// All is the list of them: what Open, repair and purge get. A further view is a folder of code
// with a view.View and a line in All (tests/letters is one that only tests have), and:
//
//   - its place in order, in layout_test.go, behind internal/engine;
//   - where the store offers it: Store is full, an accessor is not. A query is an engine.Follower
//     over view.FromFiles (tests/letters, Query);
//   - the golden traces, which show its files from then on (go test ./fuzz -run Trace -update);
//   - with the first view, every store gets wal.FeatureViews at the first index that is written,
//     and older programs refuse to write to it. Backups do not have that feature.
//
// A view is made complete by the holder of flush.lock (wal.Held), behind each index that is written
// and before the log lets go of what that index has taken in: Load, Apply for each entry between
// the moment of the files and that of the index, Save. Files that are not there, damaged, of
// another log, or so old that log and archive do not reach back to them, are made from the index:
// Reset, Save. An error is told, as an event, and nothing waits for it: the index is the truth, and
// the next round begins again. So views never stop a flush, and keep nothing of the log.
//
// What holds for every view, and is done here:
//
//   - An index that is made again may say something else of the same moment, so the files go
//     before it does (Rebuilding).
//   - A purge takes hold of all files (Doom), and once they are replaced overwrites them. What
//     a view has of a purged document is only in those.
//   - A program that does not know this folder would leave purged words in it: before the
//     first file wal.FeatureViews is raised, behind which no such program writes. A folder of a
//     view that this program does not know is removed whenever all are to go.
//   - verify compares files with an index of the same moment; repair makes them again.
//   - A backup has none of it, and a restored store makes them again. A migration moves the
//     folder with the others.
//
// Counts, vectors and scopes, below internal/view, are not on the list. Counts has no files.
// The vectors' files are named by the index and written before it takes its place, for a
// search must never see an index whose vectors are not there. The files of scopes are
// the truth of working memory, as a memory's file is of the memory, and not derived at all.
package views
