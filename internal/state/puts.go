package state

import (
	"hash/fnv"
	"sync/atomic"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/wal"
)

// A limit on the contents of a session or of the store, and a sweep of unused documents, depend on how much was
// put between a look-up and a commit. No version of a key expresses that. A running total (wal.Machine.Counts)
// does: the key 'n' has the number of memories that were put, 'b' the bytes of their documents. Each letter is
// followed by nothing for the store, or by a slot for the sessions that share it. A commit names a total as it
// read it, and by how much it may have grown since; the log evaluates that after all entries before the commit,
// from any process.
//
// Totals only grow: deletions and replacements make room that a commit need not know of. So a total is never
// too small. In the total 'n' of the store, a memory is counted if it did not exist before. The total of a
// session counts each memory that is put into it, because the memory may have been in another session.
//
// Unlike a membership, a total is not a function of the state: counting begins when a process requests it
// (WatchPuts), and two processes have different totals. That is enough for a precondition, which one process
// both makes and evaluates: it means "since the look-up". Sessions share slots, so a put may be counted for a
// session that it does not belong to; then a commit is prepared again unnecessarily.

// First bytes of the keys that PutsKey and PutBytesKey return, which distinguish these keys from those of
// documents.
const (
	Puts     = 'n'
	PutBytes = 'b'
)

// putSlots is the number of counters among which the sessions are distributed.
const putSlots = 4096

type puts struct {
	on     atomic.Bool
	counts [1 + putSlots]atomic.Uint64 // counter of the whole store, followed by those of the slots
	bytes  [1 + putSlots]atomic.Uint64
}

// PutsKey returns the key of a running total: the number of puts of memories into a session or, if session is "", the
// number of memories that were created in the store. Several sessions may share one total.
func PutsKey(session string) string { return putsKey(Puts, putSlot(session)) }

// PutBytesKey returns the key of a running total: the size in bytes of the documents that PutsKey counts.
func PutBytesKey(session string) string { return putsKey(PutBytes, putSlot(session)) }

func putsKey(letter byte, slot int) string {
	if slot == 0 {
		return string(rune(letter))
	}
	return string([]byte{letter, byte(slot >> 8), byte(slot)})
}

func putSlot(session string) int {
	if session == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(session))
	return 1 + int(h.Sum32()%putSlots)
}

// slotOfKey returns the number of the counter for a key that putsKey has made.
func slotOfKey(key string) int {
	if len(key) != 3 {
		return 0
	}
	return (int(key[1])<<8 | int(key[2])) % (1 + putSlots)
}

// WatchPuts begins to count puts. It returns false if counting had already begun. Entries that were read from the log
// before this call and are not applied yet are not counted. So use the totals only for look-ups that begin after this
// call.
func (s *State) WatchPuts() bool { return !s.puts.on.Swap(true) }

// PutCount returns the running total of PutsKey(session).
func (s *State) PutCount(session string) uint64 { return s.puts.counts[putSlot(session)].Load() }

// PutSize returns the running total of PutBytesKey(session).
func (s *State) PutSize(session string) uint64 { return s.puts.bytes[putSlot(session)].Load() }

// note adds a log entry that is being applied to the totals. If an entry is applied twice, it is counted
// twice.
func (p *puts) note(e *wal.Entry) {
	c, ok := p.of(e)
	if !ok {
		return
	}
	p.counts[0].Add(c.created)
	p.bytes[0].Add(c.size)
	if c.slot != 0 {
		p.counts[c.slot].Add(1)
		p.bytes[c.slot].Add(c.size)
	}
}

// skip is added to the totals when the state does not know how many memories were put. The totals wrap around: MostPuts
// is the largest growth that a commit may allow.
const (
	skip     = 1 << 48
	MostPuts = skip / 2
)

// begin adds skip to all totals when State begins again from an index, because it is unknown how much was put
// meanwhile. So every total changes.
func (p *puts) begin() {
	for i := range p.counts {
		p.counts[i].Add(skip)
		p.bytes[i].Add(skip)
	}
}

// Counts implements wal.Machine: it returns the amounts that a log entry adds to the running totals of puts.
func (s *State) Counts(e *wal.Entry) []wal.Amount {
	c, ok := s.puts.of(e)
	if !ok {
		return nil
	}
	list := make([]wal.Amount, 0, 4)
	if c.created > 0 {
		list = append(list, wal.Amount{Key: putsKey(Puts, 0), N: c.created})
	}
	list = append(list, wal.Amount{Key: putsKey(PutBytes, 0), N: c.size})
	if c.slot != 0 {
		list = append(list, wal.Amount{Key: putsKey(Puts, c.slot), N: 1},
			wal.Amount{Key: putsKey(PutBytes, c.slot), N: c.size})
	}
	return list
}

// counted is the amount that a log entry adds to the running totals of puts.
type counted struct {
	slot          int
	created, size uint64
}

// of returns the amount that a log entry adds to the totals. It returns false if counting has not begun, or
// the entry puts no memory.
func (p *puts) of(e *wal.Entry) (c counted, ok bool) {
	if !p.on.Load() || !isOf(e, kind.Memories) || e.Delete {
		return c, false
	}
	v, err := Read(e)
	if err != nil {
		return c, false // Apply reports it
	}
	line, err := index.ParseLine(v.Line)
	if err != nil {
		return c, false
	}
	if c.size = uint64(max(line.Size, 0)); v.Created {
		c.created = 1
	}
	c.slot = putSlot(line.SessionID)
	return c, true
}
