package state

import (
	"hash/fnv"
	"sync/atomic"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// That nothing was put into a session, or into the store, between a look and a
// commit is no version of any key; a limit on how much there may be, and a sweep of
// what nobody uses, rest on it. It is made one: the key 'n' has as its version the
// position of the newest memory that this process has seen put, 'n' + slot that of the
// newest one put into a session of this slot. What others have appended is laid over
// these keys by Also, as it is over the membership's.
//
// Unlike a membership this is no function of the state: it begins when a process asks
// for it (WatchPuts), and two processes have different versions. That is enough for a
// precondition, which is made and judged by one process: it says "the same as when I
// looked". Sessions share slots, so a put may seem to be in a session where it is not;
// then one prepares again for nothing.

// Puts is the first byte of the keys that stand for what was put.
const Puts = 'n'

// putSlots is how many slots the sessions share.
const putSlots = 4096

type puts struct {
	on     atomic.Bool
	newest [1 + putSlots]atomic.Uint64 // of all, then of each slot
}

// PutsKey is the key of what is put into a session; with "" of all that is put.
func PutsKey(session string) string { return putsKey(putSlot(session)) }

func putsKey(slot int) string {
	if slot == 0 {
		return string(rune(Puts))
	}
	return string([]byte{Puts, byte(slot >> 8), byte(slot)})
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

// WatchPuts begins to note what is put; false when that had begun. What was read of the
// log before and is not applied yet goes unnoticed: the keys say something only of
// looks from where the log's tail is now.
func (s *State) WatchPuts() bool { return !s.puts.on.Swap(true) }

// NewestPut is the version of PutsKey(session).
func (s *State) NewestPut(session string) uint64 { return s.puts.newest[putSlot(session)].Load() }

// note notes an entry that is being applied.
func (p *puts) note(e *wal.Entry) {
	if !p.on.Load() || e.Key[0] != record.Memory || e.Delete {
		return
	}
	p.raise(0, e.LSN)
	if slot := putSlot(sessionIn(e)); slot != 0 {
		p.raise(slot, e.LSN)
	}
}

// unknown marks the versions that begin gives, which no entry has.
const unknown = 1 << 62

// raise does not go back: an entry may be applied once more. A state has one
// goroutine that applies.
func (p *puts) raise(slot int, lsn uint64) {
	if now := p.newest[slot].Load(); now >= unknown || lsn > now {
		p.newest[slot].Store(lsn)
	}
}

// begin says of everything that it is another version: nobody knows what was put meanwhile.
func (p *puts) begin(epoch uint64) {
	for i := range p.newest {
		p.newest[i].Store(unknown | epoch)
	}
}

// keys are those that a pending entry is to be laid over.
func (p *puts) keys(e *wal.Entry) []string {
	if !p.on.Load() || e.Delete {
		return nil
	}
	if slot := putSlot(sessionIn(e)); slot != 0 {
		return []string{putsKey(0), putsKey(slot)}
	}
	return []string{putsKey(0)}
}

// sessionIn is the session of an entry that puts a memory.
func sessionIn(e *wal.Entry) string {
	v, err := record.Parse(e.Value)
	if err != nil {
		return "" // Apply says so
	}
	line, err := index.ParseLine(v.Line)
	if err != nil {
		return ""
	}
	return line.SessionID
}
