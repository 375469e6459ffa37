package wal

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/varve-db/varve/errs"
)

// Features are properties of a store's files that a program must know before it may use the store. A program
// that writes must know each bit of the low half; a program that reads or writes must know each bit of the
// high half. A new kind of entry or of view gets a bit: a program that does not know it would write
// checkpoints and indexes that ignore it.
//
// A feature is raised once (FileLog.Raise) and never lowered. The package comment says where features are
// stored.
type Features uint64

// The features; Features.name has their names. A bit is never reused.
const (
	// FeatureViews: view_index/ contains data derived from documents. A purge overwrites it.
	FeatureViews Features = 1 << 0
	// FeatureKept: the log has entries of a separate kind with copies of versions that were otherwise lost
	// from the log and its archive. A purge of a version also overwrites these copies of it.
	FeatureKept Features = 1 << 1

	// FeatureWriters: entries have the numbers of their writers, and entries of a separate key explain these
	// numbers. wal/writers has the explanations whose log segments were released. The lines of the index have
	// the numbers. A program that does not know writers would write an index without the numbers, and lose the
	// explanations. This feature is raised together with FeatureFields.
	FeatureWriters Features = 1 << 2

	// FeatureTerms: the word index has terms of version 2. A program that knows only version 1 would report the
	// index as damaged and rebuild it, alternating with programs that know version 2.
	FeatureTerms Features = 1 << 3

	// FeaturePurges: the log has entries that name the purged versions, and wal/purges has such entries whose
	// log segments were released. A program that does not know these entries would lose them, and restore
	// purged versions.
	FeaturePurges Features = 1 << 4

	// FeatureFields: frames of the log have fields between key and value, see package segment. A program that
	// does not know fields would read them as part of the value.
	FeatureFields Features = 1 << 32
	// FeatureNotes: the store has or had notes: entries of a kind of document that older programs do not know,
	// with a folder and a section of the index. A program that does not know notes, even one that only reads,
	// would report the section and its count in the metadata as damage of the index, and an adopted version,
	// whose index line has the time of its file, as damage of the log. The feature is raised before the first
	// note.
	FeatureNotes Features = 1 << 33

	// FeatureTestWrite and FeatureTestRead are reserved for tests: no build knows these two by default, see
	// Options.Known.
	FeatureTestWrite Features = 1 << 31
	FeatureTestRead  Features = 1 << 63
)

// KnownFeatures are the features that this build knows.
const KnownFeatures = FeatureViews | FeatureKept | FeatureWriters | FeatureTerms | FeaturePurges | FeatureFields |
	FeatureNotes

// forReaders are the features that even a program that only reads must know.
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

// Names lists the features, lowest bit first. A feature that this build does not know is named by its bit
// number.
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

// Lacking returns the error for opening the store in dir, which has the features f, with a program that knows
// only the features known. It returns nil if the program may use the store.
func (f Features) Lacking(known Features, dir string, readOnly bool) error {
	lacks := f &^ known
	if readOnly {
		lacks &= forReaders
	}
	if lacks == 0 {
		return nil
	}
	return &errs.FeatureError{Path: dir, Lacks: lacks.Names(), Readable: lacks&forReaders == 0}
}
