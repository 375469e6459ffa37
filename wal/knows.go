package wal

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/internal/vfs"
)

// What each attached process knows, in the shared page. A raise asks: it waits for each
// process that does not say that it knows the feature. Programs older than features say
// nothing.
//
// There is no room for 64 bits for each of maxPIDs processes, but the processes are of few
// builds. So the sets of features that builds know stand in a table, complemented, since 0 is
// a free place, and each process names its place in the table, in a field of sayBits bits,
// sayPerWord of them in a word:
//
//	bits 0–4   place of the set, from 1; 0: the process does not say
//	bits 5–20  of the process that says it: the low bits of xxhash64 of its id and birth
//
// The second part is there because an older program that takes a killed process off the list
// leaves the field, and the next older program that gets the place must not count as one that
// said it.
const (
	sayBits    = 21
	sayPerWord = 64 / sayBits
	saySet     = 5
	sayMask    = 1<<sayBits - 1
)

// say writes down what the process in a slot knows. If the table has no place left for its
// set the process does not say it, and counts as an old one.
func (p page) say(slot int, h vfs.Host, known Features) {
	if set := p.place(known); set != 0 {
		p.putSaid(slot, uint64(set)|sayer(h.PID, p.Load(wordBirths+slot)))
	}
}

// unsay takes that back.
func (p page) unsay(slot int) { p.putSaid(slot, 0) }

// said is what the process in a slot knows, if it says so.
func (p page) said(slot int) (known Features, ok bool) {
	pid, birth := int(p.Load(wordPIDs+slot)), p.Load(wordBirths+slot)
	field := p.Load(wordKnows+slot/sayPerWord) >> (slot % sayPerWord * sayBits) & sayMask
	set := int(field & (1<<saySet - 1))
	if set == 0 || set > maxSets || field>>saySet<<saySet != sayer(pid, birth) {
		return 0, false
	}
	v := p.Load(wordSets + set - 1)
	return Features(^v), v != 0
}

// place finds a set's place in the table, or takes one, counted from 1; 0: all are taken.
func (p page) place(known Features) int {
	for i := range maxSets {
		p.CompareAndSwap(wordSets+i, 0, ^uint64(known))
		if p.Load(wordSets+i) == ^uint64(known) {
			return i + 1
		}
	}
	return 0
}

// putSaid writes a field. Two other processes at most write to the word, so a few tries are enough;
// a simulated process that was killed would try forever. A field that could not be written does no
// harm: the process counts as an old one, or its field as belonging to no process.
func (p page) putSaid(slot int, field uint64) {
	word, shift := wordKnows+slot/sayPerWord, slot%sayPerWord*sayBits
	for range 100 {
		v := p.Load(word)
		if p.CompareAndSwap(word, v, v&^(sayMask<<shift)|field<<shift) {
			return
		}
	}
}

// sayer is what a field has of a process.
func sayer(pid int, birth uint64) uint64 {
	b := binary.LittleEndian.AppendUint64(nil, uint64(pid))
	b = binary.LittleEndian.AppendUint64(b, birth)
	return xxhash.Sum64(b) << saySet & sayMask
}
