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
	Life vfs.Life // whether the process is alive; Unknown if this process cannot tell
	// The process is in another PID namespace, such as a container's. In the namespace of this process, the PID belongs
	// to a different process or to none.
	Elsewhere bool
	slot      int
}

func (a Attached) String() string {
	if a.Elsewhere {
		return fmt.Sprintf("%d in another PID namespace (such as a container; stop it there)", a.PID)
	}
	if a.Life == vfs.Unknown {
		return fmt.Sprintf("%d (may have ended: this process cannot check it)", a.PID)
	}
	return fmt.Sprint(a.PID)
}

// All returns the processes that have the log open for writing. It omits processes that are certainly dead.
func (ps Processes) All() (list []Attached) {
	for _, a := range ps.l.listed() {
		if a.Life != vfs.Dead {
			list = append(list, a)
		}
	}
	return list
}

// Command returns the name of the program that the process runs, or "" if it is unknown.
func (a Attached) Command() string {
	if a.Elsewhere {
		return ""
	}
	return vfs.Process(a.PID).Command
}

// elsewhere reports whether the process with this id in the shared page (wal/shared) is in another PID namespace.
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

// process returns a description of the process whose id is recorded in the shared page (wal/shared).
func (l *FileLog) process(pid int) errs.Holder {
	if l.elsewhere(pid) {
		return errs.Holder{PID: pid, Host: l.host.Name, PIDNamespace: "another PID namespace (a container)"}
	}
	return errs.Holder{PID: pid, Command: vfs.Process(pid).Command, Host: l.host.Name}
}

// IDs returns the ids of the processes that All returns, including those of other PID namespaces.
func (ps Processes) IDs() (pids []int) {
	for _, a := range ps.All() {
		pids = append(pids, a.PID)
	}
	return pids
}

// RemoveDead removes the dead processes in list from the shared list of processes that have the log open. Before the
// call, the caller must have handled the files that these processes left. Processes that died after list was made (see
// Dead) stay on the shared list until the next RemoveDead.
func (ps Processes) RemoveDead(held *Held, list []Attached) error {
	if err := held.proves(ps.l); err != nil {
		return err
	}
	for _, a := range list {
		ps.l.shared.Remove(a.slot, a.PID)
	}
	return nil
}

// Dead returns the processes on the shared list that are certainly dead and that RemoveDead has not removed
// yet.
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
