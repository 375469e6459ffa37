package wal

import (
	"fmt"

	"github.com/varve-db/varve/internal/vfs"
)

// Attached is a process that said that it has the log open to write.
type Attached struct {
	PID  int
	Life vfs.Life // Unknown: it may be dead, and cannot be seen from here
	slot int
}

func (a Attached) String() string {
	if a.Life == vfs.Unknown {
		return fmt.Sprintf("%d (may be dead: it cannot be seen from here)", a.PID)
	}
	return fmt.Sprint(a.PID)
}

// Attached returns the attached processes. Those that were killed while other processes have the
// log open are not among them, as far as that is known.
func (l *FileLog) Attached() (list []Attached) {
	for _, a := range l.listed() {
		if a.Life != vfs.Dead {
			list = append(list, a)
		}
	}
	return list
}

// Processes returns the ids of those that are Attached.
func (l *FileLog) Processes() (pids []int) {
	for _, a := range l.Attached() {
		pids = append(pids, a.PID)
	}
	return pids
}

// Bury takes processes that are Dead off the list, once what they left was looked after. One that
// has died since is none of them, and is left for the next.
func (l *FileLog) Bury(held *Held, list []Attached) error {
	if err := held.proves(l); err != nil {
		return err
	}
	for _, a := range list {
		// The number last: until then no other process takes the place.
		l.shared.unsay(a.slot)
		l.shared.Store(wordBirths+a.slot, 0)
		l.shared.CompareAndSwap(wordPIDs+a.slot, uint64(a.PID), 0)
	}
	return nil
}

// Dead are those on the list that are dead for certain, and have not been taken off
// by Bury.
func (l *FileLog) Dead() (list []Attached) {
	for _, a := range l.listed() {
		if a.Life == vfs.Dead {
			list = append(list, a)
		}
	}
	return list
}

func (l *FileLog) listed() (list []Attached) {
	if l.shared.Shared == nil {
		return nil
	}
	for i := range maxPIDs {
		if pid := int(l.shared.Load(wordPIDs + i)); pid != 0 {
			list = append(list, Attached{pid, vfs.LifeOf(l.host, pid, l.shared.Load(wordBirths+i)), i})
		}
	}
	return list
}
