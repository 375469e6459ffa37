//go:build unix

package varve

import (
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
