package state

import (
	"hash/fnv"
	"sync/atomic"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/wal"
)

// How much was put into a session, or into the store, between a look and a commit is no
// version of any key; a limit on how much there may be, and a sweep of what nobody uses,
// rest on it. It is made one, a running total (wal.Machine.Counts): 'n' counts the
// memories that were put, 'b' the bytes of their documents; each followed by nothing for
// the store, or by a slot for the sessions that share it. A commit names a total as it
// saw it and by how much it may have grown since; the log judges that behind everything that comes
// before it, from any process.
//
// Totals only grow: what is deleted or replaced makes room that a commit need not know of.
// So they say at most too much. In the store a memory counts for 'n' where none was
// before. A session counts each that is put into it: it may have been in another one.
//
// Unlike a membership this is no function of the state: it begins when a process asks
// for it (WatchPuts), and two processes have different totals. That is enough for a
// precondition, which is made and judged by one process: it says "since I looked".
// Sessions share slots, so a put may seem to be in a session where it is not; then one
// prepares again for nothing.

// First bytes of the keys that stand for what was put.
const (
	Puts     = 'n'
	PutBytes = 'b'
)

// putSlots is how many slots the sessions share.
const putSlots = 4096

type puts struct {
	on     atomic.Bool
	counts [1 + putSlots]atomic.Uint64 // of all, then of each slot
	bytes  [1 + putSlots]atomic.Uint64
}

// PutsKey is the key of how many memories are put into a session; with "" into the store.
func PutsKey(session string) string { return putsKey(Puts, putSlot(session)) }

// PutBytesKey is the key of how many bytes they have.
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

// slotOfKey undoes putsKey.
func slotOfKey(key string) int {
	if len(key) != 3 {
		return 0
	}
	return (int(key[1])<<8 | int(key[2])) % (1 + putSlots)
}

// WatchPuts begins to count what is put; false when that had begun. What was read of the
// log before and is not applied yet goes unnoticed: the totals say something only of
// looks from there on.
func (s *State) WatchPuts() bool { return !s.puts.on.Swap(true) }

// PutCount is the total of PutsKey(session).
func (s *State) PutCount(session string) uint64 { return s.puts.counts[putSlot(session)].Load() }

// PutSize is the total of PutBytesKey(session).
func (s *State) PutSize(session string) uint64 { return s.puts.bytes[putSlot(session)].Load() }

// note counts an entry that is being applied. One that is applied once more counts twice.
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

// skip is what totals grow by when it is unknown what was put. They wrap around: MostPuts is the
// most that a commit may allow them to grow.
const (
	skip     = 1 << 48
	MostPuts = skip / 2
)

// begin says that anything may have been put meanwhile.
func (p *puts) begin() {
	for i := range p.counts {
		p.counts[i].Add(skip)
		p.bytes[i].Add(skip)
	}
}

// Counts is wal.Machine.Counts.
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
		list = append(list, wal.Amount{Key: putsKey(Puts, c.slot), N: 1}, wal.Amount{Key: putsKey(PutBytes, c.slot), N: c.size})
	}
	return list
}

// counted is what an entry adds.
type counted struct {
	slot          int
	created, size uint64
}

// of is what an entry adds, if it puts a memory and that is asked for.
func (p *puts) of(e *wal.Entry) (c counted, ok bool) {
	if !p.on.Load() || !isOf(e, kind.Memories) || e.Delete {
		return c, false
	}
	v, err := Read(e)
	if err != nil {
		return c, false // Apply says so
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
