package wal

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/varve-db/varve/errs"
)

// Features is a set of properties of a store's files, one bit for each feature. A program may use a store only if it
// knows the store's features: to write, it must know all of them, and to read, it must know those in the high half of
// the bits. For example, a new kind of log entry gets a bit, because a program that does not know the kind would write
// checkpoints and indexes without these entries.
//
// A feature is added to a store once (see FileLog.Raise) and never removed. The package comment describes where
// features are stored.
type Features uint64

// The features; Features.name has their names. A bit is never reused.
const (
	// FeatureViews: the folder view_index/ contains data derived from documents. A purge must overwrite it.
	FeatureViews Features = 1 << 0
	// FeatureKept: the log has entries of a separate kind, which are copies of versions that the log and its archive
	// would otherwise lose. A purge of a version must also overwrite these copies.
	FeatureKept Features = 1 << 1

	// FeatureWriters: entries and the lines of the index have the numbers of their writers. Entries of a separate key
	// describe the writer of each number; the file wal/writers has these descriptions if their part of the log was
	// released. A program that does not know writers would write an index without the numbers and lose the
	// descriptions. This feature is raised together with FeatureFields.
	FeatureWriters Features = 1 << 2

	// FeatureTerms: the word index has terms of version 2. A program that knows only version 1 would report the index
	// as damaged and rebuild it, and a program that knows version 2 would then rebuild it again.
	FeatureTerms Features = 1 << 3

	// FeaturePurges: the log has entries with the purged versions; the file wal/purges has these entries if their part
	// of the log was released. A program that does not know the entries would lose them, and restore purged versions.
	FeaturePurges Features = 1 << 4

	// FeatureFields: frames of the log have fields between key and value; see package segment. A program that does not
	// know fields would read them as a part of the value.
	FeatureFields Features = 1 << 32
	// FeatureNotes: the store has or had notes, a kind of document with its own folder and its own section in the
	// index. The feature is raised before the first note. A program that does not know notes would report damage even
	// if it only reads. It would take the section of notes for damage of the index. It would take an adopted version
	// of a note for damage of the log, because the index line of this version has the time of its file.
	FeatureNotes Features = 1 << 33

	// FeatureTestWrite and FeatureTestRead are only for tests. No program knows them, unless Options.Known has them.
	FeatureTestWrite Features = 1 << 31
	FeatureTestRead  Features = 1 << 63
)

// KnownFeatures are the features that this build knows.
const KnownFeatures = FeatureViews | FeatureKept | FeatureWriters | FeatureTerms | FeaturePurges | FeatureFields |
	FeatureNotes

// forReaders has the features that a program must know even if it only reads.
const forReaders Features = 0xffffffff << 32

func (f Features) name() string {
	switch f {
	case FeatureViews:
		return "views"
	case FeatureKept:
		return "kept"
	case FeatureWriters:
		return "writers"
	case FeatureTerms:
		return "terms"
	case FeaturePurges:
		return "purges"
	case FeatureNotes:
		return "notes"
	case FeatureFields:
		return "fields"
	case FeatureTestWrite:
		return "test-write"
	case FeatureTestRead:
		return "test-read"
	}
	return fmt.Sprintf("bit %d", bits.TrailingZeros64(uint64(f)))
}

// Names returns the names of the features, the lowest bit first. A feature that this program does not know is named by
// the number of its bit.
func (f Features) Names() (names []string) {
	for ; f != 0; f &= f - 1 {
		names = append(names, (f & -f).name())
	}
	return names
}

func (f Features) String() string {
	if f == 0 {
		return "none"
	}
	return strings.Join(f.Names(), ", ")
}

// Lacking returns an error if a program that supports only the features in supported must not open the store in
// dir, which has the features f. If readOnly is true, the program only reads and need not support the features for
// writers. Lacking returns nil if the program may open the store.
func (f Features) Lacking(supported Features, dir string, readOnly bool) error {
	lacks := f &^ supported
	if readOnly {
		lacks &= forReaders
	}
	if lacks == 0 {
		return nil
	}
	return &errs.FeatureError{Path: dir, Lacks: lacks.Names(), Readable: lacks&forReaders == 0}
}
