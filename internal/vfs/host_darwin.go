package vfs

import (
	"crypto/sha256"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

func bootID() [2]uint64 {
	if s, err := unix.Sysctl("kern.bootsessionuuid"); err == nil && s != "" {
		h := sha256.Sum256([]byte(s))
		return [2]uint64{binary.BigEndian.Uint64(h[:]), binary.BigEndian.Uint64(h[8:])}
	}
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return [2]uint64{}
	}
	return [2]uint64{uint64(tv.Sec), uint64(tv.Usec)}
}

func command(pid int) string {
	if pid == os.Getpid() {
		return ownCommand()
	}
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(kp.Proc.P_comm[:])
}

func pidNamespace() string { return "" }

func birth() uint64 {
	began, life := started(os.Getpid())
	if life != Alive {
		return 0
	}
	return birthOf("", began)
}

// started returns the time at which a process began, in microseconds since 1970.
func started(pid int) (began uint64, life Life) {
	if err := unix.Kill(pid, 0); err == unix.ESRCH {
		return 0, Dead
	}
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, Unknown
	}
	at := kp.Proc.P_starttime
	return uint64(at.Sec)*1e6 + uint64(at.Usec), Alive
}
