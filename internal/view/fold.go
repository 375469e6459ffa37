package view

import (
	"context"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/wal"
)

// Fold is data that is derived from the store's documents. It is computed from an index once, and then updated with
// each log entry.
type Fold interface {
	// Reset replaces all content by that of an index.
	Reset(ctx context.Context, set *index.Set) error
	// Apply processes an entry of the log that is not in the content so far. set is the index that the content
	// continues from, or nil if the entry is older than the mapped index. If several entries have one key, only the
	// last is certain to be passed, and an entry may be passed twice. A deletion has only the key of what is deleted,
	// so a fold that counts must record by id what it counted. The bytes of the entry are valid during the call only.
	//
	// The index line of a document is index.ParseLine of a value in Reset, and state.LineIn of an entry here. The
	// document of an entry is engine's Codec.Doc of the record that LineIn returns as well. In Reset, read the version
	// that the line names with Engine.Read and state.Place{Version, Entry}, else with Engine.FromLog. Do not use
	// Engine.Find, Load or Settled: they return the newest version and may adopt an edit, for which the holder of
	// flush.lock must not wait. If no source has the document, record its id as unreadable: an error returned here is
	// retried in every round.
	Apply(ctx context.Context, set *index.Set, e *wal.Entry) error
	// Covered reports whether the content stays valid for a newer index, whose log the fold has processed to its end.
	// If it returns false, Reset follows.
	Covered(set *index.Set) bool
}

// View is a Fold that is stored in files.
//
// A View that is registered in internal/views is brought up to date each time the index is written, by the holder of
// flush.lock, with one instance per process: Load, Apply for later entries of the log, Save. If the files are unusable,
// or the log does not reach back far enough, Reset is called instead. This happens inside a flush, so a View must bound
// the cost of Save. An error does not fail the flush: it is reported, and a later round tries again. A query uses its
// own instance, in an engine.Follower, through FromFiles.
//
// So a View does not delay the release of segments. It needs no methods for backup (a backup does not contain it), for
// purge (all its files are overwritten and rebuilt; but see Purger), or for rebuilding: internal/views does these for
// all views.
type View interface {
	Fold
	// Name returns the name of the view's folder below view_index/: lower-case letters, digits, '-'.
	Name() string
	// Load replaces the content by that of the files, and returns the log position that they cover. Missing files are
	// fs.ErrNotExist; files that are unusable for another reason are errs.ErrCorrupt.
	Load(f *Folder) (wal.Mark, error)
	// Save writes the content to the files; mark is the log position of the content. An interrupted Save must leave the
	// previous files, or files that Load rejects. If Save finds that files opened by Load are damaged, it returns
	// errs.ErrCorrupt; Reset and another Save follow. A Save that takes long ends with the error of ctx when ctx ends.
	Save(ctx context.Context, f *Folder, mark wal.Mark) error
	// Close releases what Load opened or mapped. Load may be called again.
	Close() error
	// Verify compares the files with an index of the same position. A difference is errs.ErrCorrupt.
	Verify(ctx context.Context, f *Folder, set *index.Set) error
}

// Purger is a View that can remove purged data from its files. Any other view must be rebuilt by a purge, which reads
// every document.
type Purger interface {
	// Purge removes all data of deleted documents from the content. The following Save writes new files under
	// new names, except for files that had no such data, and fails if it cannot remove an old file.
	Purge(f *Folder) error
}
