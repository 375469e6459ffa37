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

// Attached are the processes that are attached. Those that were killed while
// others have the log open are not among them, as far as that can be told.
func (l *FileLog) Attached() (list []Attached) {
	for _, a := range l.listed() {
		if a.Life != vfs.Dead {
			list = append(list, a)
		}
	}
	return list
}

// Processes are the ids of those that are Attached.
func (l *FileLog) Processes() (pids []int) {
	for _, a := range l.Attached() {
		pids = append(pids, a.PID)
	}
	return pids
}

// Died says that a process on the list is dead for certain, and has not been
// taken off by Bury.
func (l *FileLog) Died() bool { return len(l.dead()) > 0 }

// Bury takes the dead off the list; flush.lock is held, and what they left was
// looked after.
func (l *FileLog) Bury() {
	for _, a := range l.dead() {
		// The number last: until then nobody else takes the place.
		l.shared.Store(wordBirths+a.slot, 0)
		l.shared.CompareAndSwap(wordPIDs+a.slot, uint64(a.PID), 0)
	}
}

func (l *FileLog) dead() (list []Attached) {
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
