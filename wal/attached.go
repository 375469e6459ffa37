package wal

import (
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/page"
)

// Attached is a process that has the log open for writing.
type Attached struct {
	PID  int
	Life vfs.Life // Unknown means that the process may be dead, and that this process cannot find out
	// the process is in another PID namespace, such as a container: here, PID is the id of another process or of none
	Elsewhere bool
	slot      int
}

func (a Attached) String() string {
	if a.Elsewhere {
		return fmt.Sprintf("%d of another PID namespace (a container: stop it there)", a.PID)
	}
	if a.Life == vfs.Unknown {
		return fmt.Sprintf("%d (may have ended: this process cannot see it)", a.PID)
	}
	return fmt.Sprint(a.PID)
}

// All returns the attached processes. Processes that were killed while others have the log open are omitted
// where that can be detected.
func (ps Processes) All() (list []Attached) {
	for _, a := range ps.l.listed() {
		if a.Life != vfs.Dead {
			list = append(list, a)
		}
	}
	return list
}

// Command returns the name of the program that the process runs, "" if unknown.
func (a Attached) Command() string {
	if a.Elsewhere {
		return ""
	}
	return vfs.Process(a.PID).Command
}

// elsewhere reports whether a process id from the shared page belongs to another PID namespace.
func (l *FileLog) elsewhere(pid int) bool {
	found := false
	for _, a := range l.listed() {
		if a.PID == pid {
			if !a.Elsewhere {
				return false
			}
			found = true
		}
	}
	return found
}

// process describes the process whose id is in the shared page.
func (l *FileLog) process(pid int) errs.Holder {
	if l.elsewhere(pid) {
		return errs.Holder{PID: pid, Host: l.host.Name, PIDNamespace: "another PID namespace (a container)"}
	}
	return errs.Holder{PID: pid, Command: vfs.Process(pid).Command, Host: l.host.Name}
}

// IDs returns the ids of the attached processes, including those of other PID namespaces.
func (ps Processes) IDs() (pids []int) {
	for _, a := range ps.All() {
		pids = append(pids, a.PID)
	}
	return pids
}

// RemoveDead removes dead processes from the list of attached processes, after the caller has handled the files that
// they left. A process that has died since the call of Dead stays on the list until the next RemoveDead.
func (ps Processes) RemoveDead(held *Held, list []Attached) error {
	if err := held.proves(ps.l); err != nil {
		return err
	}
	for _, a := range list {
		ps.l.shared.Remove(a.slot, a.PID)
	}
	return nil
}

// Dead returns the processes on the list that are certainly dead and were not removed by RemoveDead.
func (ps Processes) Dead() (list []Attached) {
	for _, a := range ps.l.listed() {
		if a.Life == vfs.Dead {
			list = append(list, a)
		}
	}
	return list
}

func (l *FileLog) listed() (list []Attached) {
	if !l.shared.Mapped() {
		return nil
	}
	for i := range page.Places {
		if pid := l.shared.PID(i); pid != 0 {
			birth := l.shared.Birth(i)
			list = append(list, Attached{PID: pid, Life: vfs.LifeOf(l.host, pid, birth), Elsewhere: vfs.Elsewhere(l.host, birth),
				slot: i})
		}
	}
	return list
}
