//go:build unix

package postgres_test

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
	"testing"
)

// unprivileged returns the user that runs the server, which refuses to run as root: -1 for the present one.
func unprivileged() (uid, gid int) {
	if os.Getuid() != 0 {
		return -1, -1
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, err := strconv.Atoi(u.Uid)
			gid, gerr := strconv.Atoi(u.Gid)
			if err == nil && gerr == nil {
				return uid, gid
			}
		}
	}
	return 65534, 65534
}

// as returns the attributes of a process that runs as the unprivileged user and does not outlive the tests.
func as(uid, gid int) *syscall.SysProcAttr {
	attr := dieWithParent()
	if uid >= 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return attr
}

// own gives a folder to the unprivileged user.
func own(t testing.TB, dir string) {
	t.Helper()
	if uid, gid := unprivileged(); uid >= 0 {
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
}
