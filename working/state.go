package working

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// State is what one scope holds, and what the operations do to it: the part of a
// home that is the same wherever a Go process keeps it. Judge says what an
// operation would change, without changing it; Play changes it. In between a
// home may make the changes durable, and a home that follows a log plays what
// others have judged. Not for concurrent use.
//
// Judge and Play read no clock and follow no map order: the same operations at
// the same moments end in the same State. What is least recently used is the
// exception, as reads are not played; a Delta therefore names who has to go.
type State struct {
	created int64 // Unix microseconds; 0: the scope does not exist
	version uint64
	tick    int64 // of the newest change: no later one comes before it
	items   map[string]*item
	notes   []note
	marks   []*mark             // checkpoints, oldest first
	dirty   map[string]struct{} // items that changed since the newest mark; nil without marks
	use     useList             // the user's items
	expiry  expiryHeap          // the items that expire
	keys    int                 // the user's, expired ones too
	bytes   int64               // of these
}

// cell is an item at a moment; it never changes.
type cell struct {
	value    []byte
	version  uint64
	updated  int64 // Unix microseconds
	deadline int64 // tick at which it is over; 0: never
}

func (c *cell) over(tick int64) bool { return c.deadline != 0 && tick >= c.deadline }

func (c *cell) left(tick int64) int64 {
	if c.deadline == 0 {
		return Forever
	}
	return c.deadline - tick
}

// item is a cell in its place.
type item struct {
	cell
	name       string
	at         int   // in the heap, -1: not there
	prev, next *item // in the list of use, nil: not there
}

type note struct {
	seq  uint64
	text string
	time int64
}

// noteName sorts as the sequence does.
func noteName(seq uint64) string { return fmt.Sprintf("%c%016x", notePrefix, seq) }

func noteSeq(name string) uint64 {
	n, _ := strconv.ParseUint(name[1:], 16, 64)
	return n
}

func (n *note) public() Note { return Note{Seq: n.seq, Text: n.text, Time: fromMicro(n.time)} }

// NewState is a scope that does not exist yet.
func NewState() *State {
	s := &State{items: map[string]*item{}}
	s.use.init()
	return s
}

// Empty reports whether the scope does not exist.
func (s *State) Empty() bool { return s.created == 0 }

// Version is that of the newest change.
func (s *State) Version() uint64 { return s.version }

// Tick is that of the newest change. A home whose ticks come from several clocks
// judges nothing at an earlier one: then what Sweep frees at this tick is over for whatever is
// played later, in any process.
func (s *State) Tick() int64 { return s.tick }

// live is an item that is there and not over.
func (s *State) live(name string, tick int64) *item {
	if it := s.items[name]; it != nil && !it.over(tick) {
		return it
	}
	return nil
}

func size(name string, value []byte) int64 { return int64(len(name) - 1 + len(value)) }

func isUser(name string) bool { return name != "" && name[0] == valuePrefix }

// put and drop are the only ways in which items change.
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

// forget removes an item without saying that it changed: for one that is over,
// which every checkpoint sees by its deadline.
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

// Sweep frees at most limit items that were over at tick. It is no change: they
// could not be seen any more, though the documents of two States of which one was
// swept differ in them. A home whose ticks may jump forward by mistake
// should let some time pass first, lest it frees what is not over.
func (s *State) Sweep(tick int64, limit int) (n int) {
	for ; n < limit && len(s.expiry) > 0 && s.expiry[0].over(tick); n++ {
		s.forget(s.expiry[0])
	}
	return n
}

// Expires is the tick at which the next item will be over; false: none will.
func (s *State) Expires() (int64, bool) {
	if len(s.expiry) == 0 {
		return 0, false
	}
	return s.expiry[0].deadline, true
}

// Clone is a State of its own, equal to this one; values, which never change, are shared. A home
// that judges ahead of its log keeps one for that, and clones again when the log takes something
// else.
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
	c.notes = slices.Clone(s.notes) // trim clears what it cuts off
	for _, m := range s.marks {
		twin := *m
		twin.cells = maps.Clone(m.cells) // discard lays one over the other in place
		c.marks = append(c.marks, &twin)
	}
	c.dirty = maps.Clone(s.dirty)
	return c
}
