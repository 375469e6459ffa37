package storetest

import (
	"io/fs"
	"os"
	"testing"
)

// StopIdle skips the test: there is no SIGSTOP.
func StopIdle(t testing.TB, _ *os.Process, _ string) { t.Skip("no SIGSTOP") }

// Stop skips the test: there is no SIGSTOP.
func Stop(t testing.TB, _ *os.Process) { t.Skip("no SIGSTOP") }

// Continue does nothing: no child was stopped.
func Continue(testing.TB, *os.Process) {}

// Allocated returns the size of a file, in place of the space that it occupies on the disk.
func Allocated(info fs.FileInfo) int64 { return info.Size() }
