package crash

import (
	"math/rand/v2"
	"slices"
)

// Pattern selects the unsynced changes that survive a power failure.
type Pattern int

// The patterns.
const (
	// LoseAll keeps nothing that is unsynced.
	LoseAll Pattern = iota
	// KeepAll keeps everything.
	KeepAll
	// KeepPrefix keeps everything up to a random moment.
	KeepPrefix
	// KeepRandom keeps a random version of each sector and a random size of each file, and decides at random for each
	// change of names whether it survives. All these choices are independent.
	KeepRandom
	// KeepLate keeps all names and sizes. For each sector it keeps, at random, either the newest version or only the
	// durable one; versions that were written late are kept more often. So a write may survive in only some of its
	// sectors.
	KeepLate
	// KeepData keeps content, but not names and sizes.
	KeepData
	// KeepNames keeps names, but neither sizes nor content, so new files are empty.
	KeepNames
	// LoseDataZero keeps names and sizes; the content is zero.
	LoseDataZero
	// LoseDataOld keeps names and sizes; missing content is replaced by content of removed files.
	LoseDataOld
)

// Patterns returns all patterns.
func Patterns() []Pattern {
	return []Pattern{LoseAll, KeepAll, KeepPrefix, KeepRandom, KeepLate, KeepData, KeepNames, LoseDataZero, LoseDataOld}
}

func (p Pattern) String() string {
	return [...]string{
		"lose-all", "keep-all", "keep-prefix", "keep-random", "keep-late",
		"keep-data", "keep-names", "lose-data-zero", "lose-data-old",
	}[p]
}

// loss is a pattern's choice of the changes that survive. step reports whether a change of names survives. attr is
// called for each file, and sector for each sector: both get the sequence numbers of the pending changes, and return
// the number up to which these changes survive.
type loss struct {
	step   func(seq uint64) bool
	attr   func(seqs []uint64) uint64 // chooses for the size and time changes of a file
	sector func(seqs []uint64) uint64 // chooses for the versions of a sector
	failed func() bool                // reports whether a sector that a failed sync lost has reached the disk
	old    bool                       // fill missing content with the old content
}

func keepNone([]uint64) uint64         { return 0 }
func all([]uint64) uint64              { return ^uint64(0) }
func every(yes bool) func(uint64) bool { return func(uint64) bool { return yes } }

func (p Pattern) loss(d *Disk, rng *rand.Rand) loss {
	never := func() bool { return false }
	l := loss{step: every(false), attr: keepNone, sector: keepNone, failed: never}
	switch p {
	case KeepAll:
		l.step, l.attr, l.sector = every(true), all, all
	case KeepPrefix:
		last := d.moment(rng)
		upTo := func([]uint64) uint64 { return last }
		l.step, l.attr, l.sector = func(seq uint64) bool { return seq <= last }, upTo, upTo
	case KeepRandom:
		odds := []float64{0.1, 0.5, 0.9}[rng.IntN(3)]
		l.step = func(uint64) bool { return rng.Float64() < odds }
		version := func(seqs []uint64) uint64 {
			if k := rng.IntN(len(seqs) + 1); k > 0 {
				return seqs[k-1]
			}
			return 0
		}
		l.attr, l.sector = version, version
		l.failed = func() bool { return rng.IntN(2) == 0 }
	case KeepLate:
		l.step, l.attr = every(true), all
		start := d.moment(rng)
		l.sector = func(seqs []uint64) uint64 {
			newest := seqs[len(seqs)-1]
			if newest >= start && rng.IntN(8) > 0 || rng.IntN(8) == 0 {
				return newest
			}
			return 0
		}
	case KeepData:
		l.sector = all
	case KeepNames:
		l.step = every(true)
	case LoseDataZero, LoseDataOld:
		l.step, l.attr, l.old = every(true), all, p == LoseDataOld
	}
	return l
}

// moment returns the sequence number of a random pending change. It may also return 0, which is before all changes.
func (d *Disk) moment(rng *rand.Rand) uint64 {
	seqs := []uint64{0}
	for _, s := range d.pending {
		if !s.settled {
			seqs = append(seqs, s.seq)
		}
	}
	for in := range d.dirty {
		for _, c := range in.pending {
			seqs = append(seqs, c.seq)
		}
	}
	slices.Sort(seqs)
	return seqs[rng.IntN(len(seqs))]
}
