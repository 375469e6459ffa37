package index

// slotTable is a hash table of sequence numbers with open addressing and linear probing. Its keys are the first hashes
// of the entries; the second hash distinguishes two keys that share the first. A tag, eight more bits of the first
// hash, lets a search skip most slots of other keys without reading their entries. This is important for keys that are
// not in the table, such as every new key.
type slotTable struct {
	slots []uint32 // a power of two, or empty; 0 is a free slot
	tags  []uint8
	used  int
}

// home returns the slot at which the search for a key begins. h1 is the first hash of the key: its lower bits select
// the slot, its top byte the table, and the next byte is the tag.
func (t *slotTable) home(h1 uint64) int { return int(h1) & (len(t.slots) - 1) }

func tag(h1 uint64) uint8 { return uint8(h1 >> 48) }

// find returns the slot of a key, or -1 if the table does not have the key.
func (t *slotTable) find(o *Overlay, h1, h2 uint64) int {
	if len(t.slots) == 0 {
		return -1
	}
	for i := t.home(h1); t.slots[i] != 0; i = (i + 1) & (len(t.slots) - 1) {
		if t.tags[i] != tag(h1) {
			continue
		}
		if e := o.at(t.slots[i]); e.h1 == h1 && e.h2 == h2 {
			return i
		}
	}
	return -1
}

// insert adds a key that is not in the table.
func (t *slotTable) insert(o *Overlay, h1 uint64, seq uint32) {
	if t.used >= len(t.slots)*3/4 {
		old := t.slots
		n := max(8, 2*len(old))
		t.slots, t.tags = make([]uint32, n), make([]uint8, n)
		for _, s := range old {
			if s != 0 {
				t.place(o.at(s).h1, s)
			}
		}
	}
	t.place(h1, seq)
	t.used++
}

func (t *slotTable) place(h1 uint64, seq uint32) {
	i := t.home(h1)
	for t.slots[i] != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i], t.tags[i] = seq, tag(h1)
}

// remove removes a key and moves the keys after it into the gap, so that no search for one of them ends at the
// gap.
func (t *slotTable) remove(o *Overlay, h1, h2 uint64) {
	i := t.find(o, h1, h2)
	if i < 0 {
		return
	}
	mask := len(t.slots) - 1
	t.used--
	for j := (i + 1) & mask; t.slots[j] != 0; j = (j + 1) & mask {
		// The key at j may move to i unless its home is in (i, j].
		if home := t.home(o.at(t.slots[j]).h1); (j-home)&mask >= (j-i)&mask {
			t.slots[i], t.tags[i] = t.slots[j], t.tags[j]
			i = j
		}
	}
	t.slots[i] = 0
}
