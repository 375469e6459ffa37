package order

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Order is a sort order of documents: by a key, and by id among equal keys.
type Order int

// The orders. Segments have all except ByID.
const (
	ByID Order = iota
	ByTime
	ByCreated
	ByUpdated
	ByScore
	BySize
)

// Orders is the number of orders that a segment stores.
const Orders = int(BySize)

// Line is the metadata, besides time, by which documents are selected and sorted. Times are in microseconds since 1970.
type Line struct {
	Created, Updated int64
	Expires          int64 // time at which the document expires, Never if it does not
	Score            float64
	Size             uint32
}

// Never is the value of Expires for a document that does not expire.
const Never = math.MaxInt64

// Place is a position in an order: a sort key and an id.
type Place struct {
	Key int64
	ID  string
}

// Key returns the sort key in order o of a document with this line and time.
func (l *Line) Key(o Order, time int64) int64 {
	switch o {
	case ByTime:
		return time
	case ByCreated:
		return l.Created
	case ByUpdated:
		return l.Updated
	case ByScore:
		return ScoreKey(l.Score)
	default:
		return int64(l.Size)
	}
}

// ScoreKey converts a score to an integer. The integers of two scores compare as the scores do.
func ScoreKey(score float64) int64 {
	b := int64(math.Float64bits(score))
	switch {
	case score == 0:
		return 0 // also for −0
	case b < 0:
		return b ^ math.MaxInt64
	}
	return b
}

// Score returns the score of a key made by ScoreKey.
func Score(key int64) float64 {
	if key < 0 {
		key ^= math.MaxInt64
	}
	return math.Float64frombits(uint64(key))
}

// Sorted returns the numbers of n rows, sorted by the place of each row and encoded as in a segment. It calls
// step for each row and for each comparison.
func Sorted(n int, place func(i int) Place, step func()) []byte {
	type keyed struct {
		Place
		row uint32
	}
	list := make([]keyed, n)
	for i := range list {
		step()
		list[i] = keyed{place(i), uint32(i)}
	}
	slices.SortFunc(list, func(a, b keyed) int {
		step()
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID))
	})
	out := make([]byte, 0, 4*len(list))
	for i := range list {
		step()
		out = binary.LittleEndian.AppendUint32(out, list[i].row)
	}
	return out
}
