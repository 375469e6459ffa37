package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutFlags runs a program with a kernel whose file systems refuse every flag of renameat2 with EINVAL, as NFS,
// FUSE, 9p and Ceph do.
func withoutFlags(t *testing.T, cmd *exec.Cmd) ([]byte, error) {
	t.Helper()
	type result struct {
		out []byte
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread, which has the filter, ends with the goroutine
		if err := refuseRenameFlags(); err != nil {
			done <- result{nil, err}
			return
		}
		out, err := cmd.CombinedOutput()
		done <- result{out, err}
	}()
	r := <-done
	if errors.Is(r.err, errNoFilter) {
		t.Skip("no filter of system calls can be installed: " + r.err.Error() + "; TestRenameFolderWithoutFlags has the fallback")
	}
	return r.out, r.err
}

var errNoFilter = errors.New("no filter")

// refuseRenameFlags installs a filter of system calls for this thread and what it starts.
func refuseRenameFlags() error {
	const number, flags = 0, 16 + 4*8 // of struct seccomp_data: the number of the call, the low half of its fifth argument
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_RENAMEAT2, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return errors.Join(errNoFilter, err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errors.Join(errNoFilter, errno)
	}
	return nil
}

// A backup and a restore end on a file system that knows no flags of renameat2, whose folders cannot be linked either.
func TestBackupWithoutRenameFlags(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "first", "--id", "a")
	run := func(args ...string) {
		t.Helper()
		cmd := command(t, append([]string{"--store", c.store()}, args...)...)
		if out, err := withoutFlags(t, cmd); err != nil {
			t.Errorf("memctl %q: %v: %s", args, err, out)
		}
	}
	backup, empty, restored := filepath.Join(c.dir, "backup"), filepath.Join(c.dir, "empty"), filepath.Join(c.dir, "restored")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	run("put", "second", "--id", "b")
	run("put", "again", "--id", "a")
	run("backup", backup)
	run("backup", empty)
	run("backup", "--check", backup)
	run("restore", backup, restored)
	if out := c.ok("--store", restored, "get", "a", "--content"); out != "again" {
		t.Errorf("restored: %q", out)
	}
	left, err := filepath.Glob(filepath.Join(c.dir, "*.partial*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q %v", left, err)
	}
}

// A backup, a restore and a move to a mount point work in place, and lost+found is not content.
func TestVolumeAsTarget(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "first", "--id", "a")
	volume := func(name string) string {
		dir := filepath.Join(c.dir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() != 0 || syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m") != nil {
			t.Skip("no tmpfs can be mounted; VARVE_LONG=1 as root")
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	backup, restored, moved := volume("backup"), volume("restored"), volume("moved")
	c.ok("backup", backup)
	c.ok("backup", "--check", backup)
	c.ok("restore", backup, restored)
	c.ok("--store", restored, "verify")
	c.ok("--store", restored, "put", "second", "--id", "b")
	if out := c.ok("--store", restored, "list", "--output", "id"); !strings.Contains(out, "a") || !strings.Contains(out, "b") {
		t.Errorf("restored: %q", out)
	}
	for _, dir := range []string{backup, restored} {
		code, _, errOut := c.run("", "backup", dir)
		if code == 0 || !strings.Contains(errOut, "is not empty") {
			t.Errorf("a second backup to %s: exit code %d: %s", dir, code, errOut)
		}
	}
	c.ok("migrate", "--to", moved, "--switch")
	c.ok("--store", moved, "verify")
	for _, dir := range []string{backup, restored, moved} {
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(names, func(e os.DirEntry) bool { return strings.Contains(e.Name(), ".partial") }) {
			t.Errorf("%s has %v", dir, names)
		}
		if _, err := os.Stat(filepath.Join(dir, "lost+found")); err != nil {
			t.Error(err)
		}
	}
}

// A restore that is killed while it fills a mount point leaves nothing that opens as a store: documents without their log
// and settings would.
func TestVolumeKilledWhileFilled(t *testing.T) {
	t.Parallel()
	trace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not here, to kill a process at a system call")
	}
	c := newCLI(t)
	c.ok("put", "first", "--id", "a")
	backup, dir := filepath.Join(c.dir, "backup"), filepath.Join(c.dir, "volume")
	c.ok("backup", backup)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	opened := 0
	for n := 3; n < 12; n++ {
		if os.Getuid() != 0 || syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m") != nil {
			t.Skip("no tmpfs can be mounted; VARVE_LONG=1 as root")
		}
		cmd := command(t, "restore", backup, dir)
		cmd.Args = append([]string{trace, "-f", "-qq", "-o", os.DevNull, "-e", "trace=renameat2", "-e", fmt.Sprint("inject=renameat2:signal=KILL:when=", n)}, cmd.Args...)
		cmd.Path = trace
		out, err := cmd.CombinedOutput()
		_, merr := os.Stat(filepath.Join(dir, "memories"))
		if code, list, errOut := c.run("", "--store", dir, "list", "--output", "id"); err != nil && merr == nil {
			if opened++; code == 0 || !strings.Contains(errOut, "was killed") {
				t.Errorf("killed at rename %d (%s): list has %q, exit code %d: %s", n, out, list, code, errOut)
			}
		}
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
	if opened == 0 {
		t.Skip("no process was killed: this machine does not let one trace another")
	}
}

// What a killed process left in a mount point goes with the next backup.
func TestVolumeAfterAKill(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "first", "--id", "a")
	dir := filepath.Join(c.dir, "volume")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 || syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m") != nil {
		t.Skip("no tmpfs can be mounted; VARVE_LONG=1 as root")
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	part := filepath.Join(dir, "volume."+strings.Repeat("a", 26)+".partial")
	if err := os.Mkdir(part, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, part+".lock", "")
	c.ok("backup", dir)
	if _, err := os.Stat(part); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left is still there: %v", err)
	}
}
