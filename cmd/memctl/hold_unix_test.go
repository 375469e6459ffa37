//go:build unix

package main

import (
	"os"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// hold FILE: this process holds the lock on it until the script ends.
func hold(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: hold FILE")
	}
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_RDWR, 0)
	ts.Check(err)
	ts.Defer(func() { _ = f.Close() })
	ts.Check(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
}
