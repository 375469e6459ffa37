//go:build unix

package varve

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
)

func stopProcess(t testing.TB, p *os.Process) {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func contProcess(t testing.TB, p *os.Process) {
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// allocated is what a file takes of the disk.
func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
