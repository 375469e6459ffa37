package working

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// State is the content of one scope, and implements the operations on it. All homes in Go use it. Judge returns the
// changes that an operation would make, without making them; Play makes the changes. Between Judge and Play, a home may
// make the changes durable. A home that follows a log plays the changes that other processes have judged. A State is
// not safe for concurrent use.
//
// Judge and Play read no clock and do not depend on map order: the same operations at the same moments lead to the same
// State. The only exception is the order of last use, because reads are not played. Therefore a Delta names the values
// that are evicted.
type State struct {
	created int64 // Unix microseconds; 0: the scope does not exist
	version uint64
	tick    int64 // tick of the newest change: no later change has an earlier tick
	items   map[string]*item
	notes   []note
	marks   []*mark             // checkpoints, oldest first
	dirty   map[string]struct{} // items that changed since the newest mark; nil without marks
	use     useList             // the user's items in the order of last use
	expiry  expiryHeap          // the items that have a deadline, in the order of deadlines
	keys    int                 // number of the user's items, including expired ones
	bytes   int64               // number of bytes of the keys and values of these items
}

// cell is the value of an item at some moment. A cell never changes.
type cell struct {
	value    []byte
	version  uint64
	updated  int64 // Unix microseconds
	deadline int64 // tick at which the item expires; 0: never
}

func (c *cell) over(tick int64) bool { return c.deadline != 0 && tick >= c.deadline }

func (c *cell) ticksLeft(tick int64) int64 {
	if c.deadline == 0 {
		return Forever
	}
	return c.deadline - tick
}

// item is the current value of a name, with its position in the expiry heap and in the list of last use.
type item struct {
	cell
	name       string
	at         int   // index in the expiry heap, -1: not in it
	prev, next *item // neighbors in the list of last use, nil: not in it
}

type note struct {
	seq  uint64
	text string
	time int64
}

// noteName returns the name of a scratchpad entry in a checkpoint. The order of the names is the order of the sequence
// numbers.
func noteName(seq uint64) string { return fmt.Sprintf("%c%016x", notePrefix, seq) }

func noteSeq(name string) uint64 {
	n, _ := strconv.ParseUint(name[1:], 16, 64)
	return n
}

func (n *note) public() Note { return Note{Seq: n.seq, Text: n.text, Time: fromMicro(n.time)} }

// NewState returns the state of a scope that does not exist yet.
func NewState() *State {
	s := &State{items: map[string]*item{}}
	s.use.init()
	return s
}

// Empty reports whether the scope does not exist.
func (s *State) Empty() bool { return s.created == 0 }

// Version returns the version of the newest change of the scope.
func (s *State) Version() uint64 { return s.version }

// Tick returns the tick of the newest change. A home that gets ticks from several clocks must not judge an operation
// at an earlier tick than this. Only then are the items that Sweep removes at this tick expired for all later changes,
// in all processes.
func (s *State) Tick() int64 { return s.tick }

// live returns the item with the given name, or nil if there is no such item or it has expired at tick.
func (s *State) live(name string, tick int64) *item {
	if it := s.items[name]; it != nil && !it.over(tick) {
		return it
	}
	return nil
}

func size(name string, value []byte) int64 { return int64(len(name) - 1 + len(value)) }

func isUser(name string) bool { return name != "" && name[0] == valuePrefix }

// put makes c the current value of the item with this name, and records the change for the next checkpoint. For a
// value of the user, it also updates the counts and the order of last use.
func (s *State) put(name string, c cell) {
	it := s.items[name]
	if it == nil {
		it = &item{name: name, at: -1}
		s.items[name] = it
		if isUser(name) {
			s.keys++
		}
	} else if isUser(name) {
		s.bytes -= size(name, it.value)
	}
	if isUser(name) {
		s.bytes += size(name, c.value)
		s.use.touch(it)
	}
	it.cell = c
	s.expiry.set(it)
	s.soil(name)
}

func (s *State) drop(name string) {
	if it := s.items[name]; it != nil {
		s.forget(it)
		s.soil(name)
	}
}

// forget removes an item without recording a change for the next checkpoint. An expired item needs no record: every
// checkpoint recognizes by its deadline that it has expired.
func (s *State) forget(it *item) {
	delete(s.items, it.name)
	if isUser(it.name) {
		s.keys--
		s.bytes -= size(it.name, it.value)
		s.use.remove(it)
	}
	s.expiry.remove(it)
}

func (s *State) soil(name string) {
	if s.dirty != nil {
		s.dirty[name] = struct{}{}
	}
}

// Sweep removes items that have expired at tick (see Moment), at most limit of them, and returns their number. This is
// not a change of the scope, because expired items are invisible; but the document no longer contains the removed
// items. If the ticks of a home may jump forward by mistake, the home should wait before it sweeps, because the items
// may not really have expired.
func (s *State) Sweep(tick int64, limit int) (n int) {
	for ; n < limit && len(s.expiry) > 0 && s.expiry[0].over(tick); n++ {
		s.forget(s.expiry[0])
	}
	return n
}

// Expires returns the tick (see Moment) at which the next item expires. It returns false if no item expires.
func (s *State) Expires() (int64, bool) {
	if len(s.expiry) == 0 {
		return 0, false
	}
	return s.expiry[0].deadline, true
}

// Clone returns an independent copy of the State. The copy shares the values, which never change. A home may judge
// operations on a clone before their changes are in its log, and make a new clone if the log gets other entries
// instead.
func (s *State) Clone() *State {
	c := NewState()
	c.created, c.version, c.tick = s.created, s.version, s.tick
	add := func(it *item) {
		twin := &item{cell: it.cell, name: it.name, at: -1}
		c.items[it.name] = twin
		c.expiry.set(twin)
		if isUser(it.name) {
			c.use.touch(twin)
		}
	}
	for it := range s.use.all {
		add(it)
	}
	if it := s.items[taskName]; it != nil {
		add(it)
	}
	c.keys, c.bytes = s.keys, s.bytes
	c.notes = slices.Clone(s.notes) // trim clears the entries that it removes
	for _, m := range s.marks {
		twin := *m
		twin.cells = maps.Clone(m.cells) // discard merges maps in place
		c.marks = append(c.marks, &twin)
	}
	c.dirty = maps.Clone(s.dirty)
	return c
}
