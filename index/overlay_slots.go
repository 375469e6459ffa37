package index

// slotTable is an open hash table of sequence numbers, with linear probing. Its
// keys are the first hashes of the entries; two keys that share one are told
// apart by the second.
type slotTable struct {
	slots []uint32 // a power of two, or none
	used  int
}

// home is where the search for a hash begins. The top byte chose the table.
func (t *slotTable) home(h1 uint64) int { return int(h1) & (len(t.slots) - 1) }

// find returns the slot of a key, -1 if there is none.
func (t *slotTable) find(o *Overlay, h1, h2 uint64) int {
	if len(t.slots) == 0 {
		return -1
	}
	for i := t.home(h1); t.slots[i] != 0; i = (i + 1) & (len(t.slots) - 1) {
		if e := o.at(t.slots[i]); e.h1 == h1 && e.h2 == h2 {
			return i
		}
	}
	return -1
}

// insert adds a key that is not there.
func (t *slotTable) insert(o *Overlay, h1 uint64, seq uint32) {
	if t.used >= len(t.slots)*3/4 {
		old := t.slots
		t.slots = make([]uint32, max(8, 2*len(old)))
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
	t.slots[i] = seq
}

// remove takes a key out and moves those behind it up, so that no search stops short.
func (t *slotTable) remove(o *Overlay, h1, h2 uint64) {
	i := t.find(o, h1, h2)
	if i < 0 {
		return
	}
	mask := len(t.slots) - 1
	t.used--
	for j := (i + 1) & mask; t.slots[j] != 0; j = (j + 1) & mask {
		// The one at j may stand at i unless its home lies in (i, j].
		if home := t.home(o.at(t.slots[j]).h1); (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = 0
}
