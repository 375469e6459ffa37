package wal

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/varve-db/varve/errs"
)

// Features are the features of a store, which a program must know to use it. A bit of the low half
// must be known by every program that writes, a bit of the high half also by every program that
// reads. A new kind of entry or of view gets a bit: a program that does not know it would write
// checkpoints and indexes that ignore it.
//
// A feature is raised once (FileLog.Raise) and never lowered. The package comment says
// where features are stored.
type Features uint64

// The features, each with its name in Features.name. A bit is never used twice.
const (
	// FeatureViews: view_index/ contains data derived from documents. A purge overwrites it.
	FeatureViews Features = 1 << 0
	// FeatureKept: the log has copies of versions that neither it nor its archive had, entries of
	// a kind of their own. A purge overwrites those of what it purges.
	FeatureKept Features = 1 << 1

	// FeatureWriters: entries have the numbers of their writers, entries of a key of their own explain
	// these, wal/writers has the explanations that the log has released, and the lines of the index
	// have the numbers. A program that does not know them would write an index without them, and
	// release what explains a number. It is raised together with FeatureFields.
	FeatureWriters Features = 1 << 2

	// FeatureTerms: the index of words has terms of version 2. A program that knows only those of version 1
	// would take it for damaged and make it again, in turns with the others.
	FeatureTerms Features = 1 << 3

	// FeatureFields: frames of the log have fields between key and value, see package segment. A
	// program that does not know them would take them for a part of the value.
	FeatureFields Features = 1 << 32
	// FeatureNotes: the store has notes, or had some: entries of a kind of document that other programs do not know, with
	// a folder and a section of the index. A program that does not know them would take the section, and its count in
	// the metadata, for damage of the index, and an adopted version, whose line has the time of its file, for damage of
	// the log, also if it only reads. It is raised before the first note.
	FeatureNotes Features = 1 << 33

	// Reserved for tests: no build knows these two by itself, see Options.Known.
	FeatureTestWrite Features = 1 << 31
	FeatureTestRead  Features = 1 << 63
)

// KnownFeatures are the features that this build knows.
const KnownFeatures = FeatureViews | FeatureKept | FeatureWriters | FeatureTerms | FeatureNotes | FeatureFields

// forReaders are the features that a program must know also to read.
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

// Names lists the features, lowest bit first. One that this build does not know is
// named by the number of its bit.
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

// Lacking is the error for a program that knows some features and wants to use a store in
// dir that has others; nil if it may.
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
