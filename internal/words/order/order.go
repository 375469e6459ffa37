package order

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Order is what documents are sorted by: a key, and those of one key by id.
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

// Orders is how many of them segments have.
const Orders = int(BySize)

// Line is what documents are chosen and sorted by besides their time. Times are in microseconds since 1970.
type Line struct {
	Created, Updated int64
	Expires          int64 // Never: it does not
	Score            float64
	Size             uint32
}

// Never is when a document expires that does not.
const Never = math.MaxInt64

// Place is one in an order.
type Place struct {
	Key int64
	ID  string
}

// Key is that of a document in an order.
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

// ScoreKey is a score as a number of the same order.
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

// Score is the score that has a key.
func Score(key int64) float64 {
	if key < 0 {
		key ^= math.MaxInt64
	}
	return math.Float64frombits(uint64(key))
}

// Sorted are the numbers of the rows that have some places, as a segment has them. It calls step as it
// goes.
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
