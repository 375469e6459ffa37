package view

import (
	"context"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/wal"
)

// Fold is what is made of the store's documents: as of an index, and then entry by entry.
type Fold interface {
	// Reset makes it exactly as of an index, whatever it was.
	Reset(ctx context.Context, set *index.Set) error
	// Apply takes in an entry of the log that is not in what it has so far. set is the index
	// that it continues from; nil where the entry is older than the index that is mapped. Of
	// several entries of one key only the last is sure to come, and an entry may come twice.
	// A deletion does not say what is deleted. So a fold that counts keeps, by id, what it has
	// counted. The bytes of the entry are valid during the call only.
	//
	// What the index says of a document, its line, is index.ParseLine of a value in Reset, and
	// state.LineIn of an entry here. The document: of an entry, engine's Codec.Doc of the record
	// that LineIn returns too; in Reset, the version that the line names, by Engine.Read with
	// state.Place{Version, Entry}, else Engine.FromLog. Engine.Find, Load and Settled return the
	// newest version, and may adopt an edit, which the holder of flush.lock must not wait for.
	// Where neither has it, keep the id as one that is unknown: an error here is tried again with
	// each round.
	Apply(ctx context.Context, set *index.Set, e *wal.Entry) error
	// Covered reports whether the fold stays valid for a newer index, whose log it has seen to the
	// end; false: Reset follows.
	Covered(set *index.Set) bool
}

// View is a Fold that is kept in files.
//
// One that is registered in internal/views is made complete each time the index is written,
// by the holder of flush.lock, with one instance in each process: Load, Apply for what the log has
// since, Save. Where the files cannot be used, or the log does not reach back so far, it is
// Reset. This is done inside a flush, so a View bounds what a Save costs. An error does not fail
// the flush: it is told, and a later round tries again. A query uses an instance of
// its own, in an engine.Follower, by way of FromFiles.
//
// So a View keeps nothing from being released, and needs no method for backup (it is not in
// one), purge (all its files are overwritten, and it is made again; but see Purger) and rebuilding
// (the same): internal/views does these for all.
type View interface {
	Fold
	// Name is that of its folder below view_index/: lower-case letters, digits, '-'.
	Name() string
	// Load takes in what the files have, and says as of which moment of the log that is.
	// Files that are not there are fs.ErrNotExist, others that cannot be used are
	// errs.ErrCorrupt.
	Load(f *Folder) (wal.Mark, error)
	// Save makes the files those of a moment, that of what it has. A Save that is cut leaves
	// the files of the last one, or none that Load believes. Where it finds that files which Load
	// has opened are damaged, errs.ErrCorrupt, Reset and another Save follow.
	Save(f *Folder, at wal.Mark) error
	// Close releases what Load has opened or mapped; Load may be called again.
	Close() error
	// Verify compares the files with an index of the same moment: errs.ErrCorrupt.
	Verify(ctx context.Context, f *Folder, set *index.Set) error
}

// Purger is a View that need not be made again for a purge, which would read each document.
type Purger interface {
	// Purge leaves nothing in it of what is not there any more. The files that Save writes behind it
	// have new names, but those that had nothing of it; Save fails where one of the old ones stays.
	Purge(f *Folder) error
}
