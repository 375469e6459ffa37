package page

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/internal/vfs"
)

// Places is the maximum number of processes in the page's list of attached processes.
const Places = 192

// Sets is the maximum number of feature sets in the page's table.
const Sets = wordPIDs - wordSets

// NoSlot is the slot of a process that is not attached. Unlisted is the slot of an attached process for which the list
// had no room.
const (
	NoSlot   = -1
	Unlisted = -2
)

// The features that each attached process knows: a raise of features waits for each process that has not recorded
// that it knows the feature. Programs older than features record nothing.
//
// There is no room for 64 bits for each of Places processes, but the processes are of few builds. So a table
// has the sets of features that builds know, complemented, because 0 is a free place. Each process names its
// place in the table, in a field of sayBits bits, sayPerWord of them in a word:
//
//	bits 0–4   place of the set, from 1; 0: not recorded
//	bits 5–20  the process that recorded it: the low bits of xxhash64 of its id and birth
//
// The second part is needed because an older program that removes a killed process from the list leaves the
// field, and the next older program that gets the slot must not count as the one that wrote the field.
const (
	sayBits    = 21
	sayPerWord = 64 / sayBits
	saySet     = 5
	sayMask    = 1<<sayBits - 1
)

// PID returns the id of the process in a slot, or 0 if the slot is free.
func (p Page) PID(slot int) int { return int(p.words.Load(wordPIDs + slot)) }

// Birth returns the birth of the process in a slot, or 0 if it was not recorded. The birth is a number that
// distinguishes the process from others with the same id; see vfs.Host.
func (p Page) Birth(slot int) uint64 { return p.words.Load(wordBirths + slot) }

// Unlisted returns the number of attached processes for which the list had no room.
func (p Page) Unlisted() uint64 { return p.words.Load(wordUnlisted) }

// Claim adds a process, with the features that it knows, to the page's list of attached processes, and returns the
// slot of the process in the list. If the list has no room, Claim counts the process and returns the constant
// Unlisted. Except for the features, the list is used only in messages; locks decide. The caller holds open.lock.
func (p Page) Claim(h vfs.Host, known uint64) int {
	for i := range Places {
		if p.words.CompareAndSwap(wordPIDs+i, 0, uint64(h.PID)) {
			if h.Birth != 0 {
				p.words.Store(wordBirths+i, h.Birth)
			}
			p.Say(i, h, known)
			return i
		}
	}
	p.add(wordUnlisted, 1)
	return Unlisted
}

// Release is called when a process closes the log: it removes the process from the list of attached processes. It does
// nothing if the slot now belongs to another process, because another process has recovered the log in the meantime.
func (p Page) Release(slot, pid int) {
	if slot == Unlisted {
		p.decrement(wordUnlisted)
	}
	if slot < 0 || p.words.Load(wordPIDs+slot) != uint64(pid) {
		return
	}
	p.Unsay(slot)
	if p.words.Load(wordBirths+slot) != 0 {
		p.words.Store(wordBirths+slot, 0)
	}
	p.words.Store(wordPIDs+slot, 0)
}

// Remove removes a dead process from the list. It clears the id of the process last, so that no other process takes
// the slot before the other fields are cleared.
func (p Page) Remove(slot, pid int) {
	p.Unsay(slot)
	p.words.Store(wordBirths+slot, 0)
	p.words.CompareAndSwap(wordPIDs+slot, uint64(pid), 0)
}

// decrement subtracts 1 from a word, unless the word is 0.
func (p Page) decrement(word int) {
	for {
		if v := p.words.Load(word); v == 0 || p.words.CompareAndSwap(word, v, v-1) {
			return
		}
	}
}

// Say records the features that the process in a slot knows. If the table has no room for this set of features, Say
// records nothing, and the process is treated like a program that is older than features.
func (p Page) Say(slot int, h vfs.Host, known uint64) {
	if set := p.place(known); set != 0 {
		p.putSaid(slot, uint64(set)|sayer(h.PID, p.words.Load(wordBirths+slot)))
	}
}

// Unsay clears the record of the features that the process in a slot knows.
func (p Page) Unsay(slot int) { p.putSaid(slot, 0) }

// Said returns the features that the process in a slot knows. ok is false if the process has not recorded its features.
func (p Page) Said(slot int) (known uint64, ok bool) {
	pid, birth := int(p.words.Load(wordPIDs+slot)), p.words.Load(wordBirths+slot)
	field := p.words.Load(wordKnows+slot/sayPerWord) >> (slot % sayPerWord * sayBits) & sayMask
	set := int(field & (1<<saySet - 1))
	if set == 0 || set > Sets || field>>saySet<<saySet != sayer(pid, birth) {
		return 0, false
	}
	v := p.words.Load(wordSets + set - 1)
	return ^v, v != 0
}

// place returns the number of a set of features in the page's table, counted from 1. If the set is not in the table,
// place adds it. It returns 0 if the table has no room.
func (p Page) place(known uint64) int {
	for i := range Sets {
		p.words.CompareAndSwap(wordSets+i, 0, ^known)
		if p.words.Load(wordSets+i) == ^known {
			return i + 1
		}
	}
	return 0
}

// putSaid writes the field of a slot that records the features of its process. At most two other processes write to the
// same word, so a few attempts suffice. The number of attempts is limited because a process that a simulation has
// killed would otherwise try forever. If the field cannot be written, no harm is done: the process is treated like a
// program that is older than features, or the field belongs to no process.
func (p Page) putSaid(slot int, field uint64) {
	word, shift := wordKnows+slot/sayPerWord, slot%sayPerWord*sayBits
	for range 100 {
		v := p.words.Load(word)
		if p.words.CompareAndSwap(word, v, v&^(sayMask<<shift)|field<<shift) {
			return
		}
	}
}

// sayer returns the bits of a slot's field that identify the process that wrote the field.
func sayer(pid int, birth uint64) uint64 {
	b := binary.LittleEndian.AppendUint64(nil, uint64(pid))
	b = binary.LittleEndian.AppendUint64(b, birth)
	return xxhash.Sum64(b) << saySet & sayMask
}
