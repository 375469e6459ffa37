package state

import (
	"hash/fnv"
	"sync/atomic"

	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// Deleting an entity of a graph (package graph) also deletes the relations that begin or end at its
// name. That there is not one more of them by then is no version of any key. It is made one: 'e' +
// slot has as its version the position of the newest relation that this process has seen put with a
// name of this slot at an end. What others have appended is laid over these keys by Also, as it is
// over the membership's.
//
// Unlike a membership this is no function of the state: it begins when a process asks
// for it (WatchEnds), and two processes have different versions. That is enough for a
// precondition, which is made and judged by one process: it says "the same as when I
// looked". Names share slots; then one begins again for nothing. A relation whose names
// cannot be told, for its document is compressed, counts for EndsKey("") alone, which is
// to be named beside.

// Ends is the first byte of the keys that stand for the relations of a name.
const Ends = 'e'

const endSlots = 4096

type ends struct {
	on     atomic.Bool
	newest [1 + endSlots]atomic.Uint64 // of the name "" and of names that are not known, then of each slot
}

// EndsKey is the key of the relations that are put with a name at an end.
func EndsKey(name string) string { return endsKey(endSlot(name)) }

func endsKey(slot int) string { return string([]byte{Ends, byte(slot >> 8), byte(slot)}) }

func endSlot(name string) int {
	if name == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return 1 + int(h.Sum32()%endSlots)
}

// WatchEnds begins to note relations. What was read of the log before and is not applied
// yet goes unnoticed: the keys say something only of looks from where the log's tail is
// now.
func (s *State) WatchEnds() { s.ends.on.Store(true) }

// NewestEnd is the version of EndsKey(name).
func (s *State) NewestEnd(name string) uint64 { return s.ends.newest[endSlot(name)].Load() }

// currentEnds is Current of such a key.
func (s *State) currentEnds(key string) wal.LSN {
	if len(key) != 3 {
		return 0
	}
	return s.ends.newest[(int(key[1])<<8|int(key[2]))%len(s.ends.newest)].Load()
}

// note notes an entry that is being applied; it may be once more.
func (n *ends) note(e *wal.Entry) {
	for _, slot := range n.of(e) {
		if now := n.newest[slot].Load(); now >= unseen || e.LSN > now {
			n.newest[slot].Store(e.LSN)
		}
	}
}

// unseen marks the versions that begin gives, which no entry has.
const unseen = 1 << 62

// begin says of everything that it is another version: what was put meanwhile is unknown.
func (n *ends) begin(epoch uint64) {
	for i := range n.newest {
		n.newest[i].Store(unseen | epoch)
	}
}

// keys are those that a pending entry is to be laid over.
func (n *ends) keys(e *wal.Entry) []string {
	slots := n.of(e)
	keys := make([]string, len(slots))
	for i, slot := range slots {
		keys[i] = endsKey(slot)
	}
	return keys
}

// of are the slots of a relation that is put. What cannot be read Apply tells.
func (n *ends) of(e *wal.Entry) []int {
	if !n.on.Load() || !isOf(e, record.Memory) || e.Delete || !graph.IsRelationID(e.Key[1:]) {
		return nil
	}
	v, err := Read(e)
	if err != nil {
		return nil
	}
	if doc, plain := v.Plain(); plain {
		if node, ok := graph.Read(e.Key[1:], doc); ok && node.Relation != nil {
			return []int{endSlot(node.Relation.From), endSlot(node.Relation.To)}
		}
	}
	return []int{0}
}
