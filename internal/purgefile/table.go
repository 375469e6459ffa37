package purgefile

import (
	"cmp"
	"math"
	"slices"
)

// Table has the rows of wal/purges in the order in which they were added, and finds the rows of a document. The zero
// value is empty.
type Table struct {
	list   []Row
	upTo   map[Key]uint64
	one    map[Key][]int // redactions, as indexes in list
	stores []digest
}

// Add adds a row. It ignores a row if the rows of the same document already record the same redaction, or a purge up to
// the same or a later version.
func (t *Table) Add(r Row) {
	if t.upTo == nil {
		t.upTo, t.one = map[Key]uint64{}, map[Key][]int{}
	}
	if r.Redacted {
		if slices.ContainsFunc(t.one[r.Key], func(i int) bool { return t.list[i].Version == r.Version }) {
			return // wal/purges, which is read first, has the member done
		}
		t.one[r.Key] = append(t.one[r.Key], len(t.list))
	} else {
		if t.upTo[r.Key] >= r.Version {
			return
		}
		t.upTo[r.Key] = r.Version
	}
	if !slices.Contains(t.stores, r.Store) {
		t.stores = append(t.stores, r.Store)
	}
	t.list = append(t.list, r)
}

// All returns the rows. The caller must not change them.
func (t *Table) All() []Row { return t.list }

// Sorted returns the rows in the order of their log entries.
func (t *Table) Sorted() []Row {
	list := slices.Clone(t.list)
	slices.SortStableFunc(list, func(a, b Row) int { return cmp.Compare(a.Since, b.Since) })
	return list
}

// UpTo returns the version up to which a document is purged, or 0 if it was never purged. key is the document's key in
// the log.
func (t *Table) UpTo(key string) (version uint64) {
	for _, store := range t.stores {
		version = max(version, t.upTo[KeyOf(store, key)])
	}
	return version
}

// Redactions returns the rows of the redacted versions of a document. It omits versions that were purged later.
func (t *Table) Redactions(key string) (rows []Row) {
	if len(t.one) == 0 {
		return nil
	}
	for _, store := range t.stores {
		digest := KeyOf(store, key)
		for _, i := range t.one[digest] {
			if t.list[i].Version > t.upTo[digest] {
				rows = append(rows, t.list[i])
			}
		}
	}
	return rows
}

// Redacted returns the row of a version of the document whose log key is key. It returns false if the version is not
// redacted.
func (t *Table) Redacted(key string, version uint64) (Row, bool) {
	for _, r := range t.Redactions(key) {
		if r.Version == version {
			return r, true
		}
	}
	return Row{}, false
}

// Hides reports whether a version of the document whose log key is key is purged or redacted.
func (t *Table) Hides(key string, version uint64) bool {
	if len(t.list) == 0 {
		return false
	}
	if version <= t.UpTo(key) {
		return true
	}
	_, is := t.Redacted(key, version)
	return is
}

// HidesAt reports whether the version that a document had at a log position is purged or redacted. The caller need not
// know that version.
func (t *Table) HidesAt(key string, position uint64) bool {
	if len(t.list) == 0 {
		return false
	}
	if t.UpTo(key) >= position {
		return true
	}
	return slices.ContainsFunc(t.Redactions(key), func(r Row) bool { return r.Version < position && position <= r.Next })
}

// Pending returns the redactions of a store whose versions are not overwritten yet.
func (t *Table) Pending(store [16]byte) (rows []Row) {
	for _, r := range t.list {
		if r.Redacted && !r.Done && r.Store == store && r.Version > t.upTo[r.Key] {
			rows = append(rows, r)
		}
	}
	return rows
}

// Erased returns a position of the log of a store. Before this position, the log had none of the data that later
// purges have erased. Later purges are those that ended after the log position pos. If the position is unknown,
// Erased returns 0. A redacted version of a document that was purged afterwards was erased by that purge.
func (t *Table) Erased(store [16]byte, pos uint64) uint64 {
	first := uint64(math.MaxUint64)
	for i := range t.list {
		switch r := &t.list[i]; {
		case r.Store != store, !r.Redacted && r.Since < pos,
			r.Redacted && r.Done && r.Ended != 0 && r.Ended <= pos,
			r.Redacted && (!r.Done || r.Ended == 0) && r.Version <= t.upTo[r.Key]:
			// of another store, ended at the position or before it, or erased by the purge of another row
		case r.Redacted:
			first = min(first, r.Version)
		default:
			first = min(first, r.First)
		}
	}
	if first == math.MaxUint64 { // no row says what was erased
		return 0
	}
	return first
}

// Finish returns the rows in the order of their log entries. It marks the redactions of the versions in done as
// overwritten; ended is the end of the log at the time of the overwriting.
func (t *Table) Finish(store [16]byte, done map[uint64]bool, ended uint64) []Row {
	list := t.Sorted()
	for i := range list {
		if r := &list[i]; r.Redacted && r.Store == store && done[r.Version] {
			r.Done, r.Ended = true, ended
		}
	}
	return list
}
