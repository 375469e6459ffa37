package wal

import (
	"fmt"

	"github.com/varve-db/varve/internal/vfs"
)

// Attached is a process that has the log open for writing.
type Attached struct {
	PID  int
	Life vfs.Life // Unknown: the process may be dead, and this process cannot see it
	slot int
}

func (a Attached) String() string {
	if a.Life == vfs.Unknown {
		return fmt.Sprintf("%d (may have ended: this process cannot see it)", a.PID)
	}
	return fmt.Sprint(a.PID)
}

// Attached returns the attached processes. Processes that were killed while others have the log
// open are omitted, as far as that is known.
func (l *FileLog) Attached() (list []Attached) {
	for _, a := range l.listed() {
		if a.Life != vfs.Dead {
			list = append(list, a)
		}
	}
	return list
}

// Processes returns the ids of the attached processes.
func (l *FileLog) Processes() (pids []int) {
	for _, a := range l.Attached() {
		pids = append(pids, a.PID)
	}
	return pids
}

// Bury removes dead processes from the list, once their leftovers were handled. A process that has
// died since the call of Dead stays for the next Bury.
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

// Dead returns the processes on the list that are certainly dead and not yet removed by Bury.
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
