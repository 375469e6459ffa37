package main

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openPty opens a pseudo terminal that changes nothing of what is written to it: what is
// read from screen is what a terminal would obey, byte by byte.
func openPty(t *testing.T, size unix.Winsize) (screen, line *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	fd := int(screen.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	line, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	mode, err := unix.IoctlGetTermios(int(line.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	mode.Oflag &^= unix.OPOST
	mode.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(int(line.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(line.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		t.Fatal(err)
	}
	return screen, line
}

// onTerminal runs a command that has a terminal of its own for all three streams, types
// into it, and gives what that terminal was sent.
func onTerminal(t *testing.T, cmd *exec.Cmd, typed string) string {
	t.Helper()
	return onTerminalOf(t, unix.Winsize{Row: 50, Col: 200}, cmd, typed)
}

func onTerminalOf(t *testing.T, size unix.Winsize, cmd *exec.Cmd, typed string) string {
	t.Helper()
	screen, line := openPty(t, size)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = line, line, line
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = line.Close()
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	if typed != "" {
		if _, err := io.WriteString(screen, typed); err != nil {
			t.Error(err)
		}
	}
	sent, _ := io.ReadAll(screen) // EIO when the last that had it open is gone
	_ = cmd.Wait()
	if !late.Stop() {
		t.Errorf("%q did not end: %q", cmd.Args, sent)
	}
	return string(sent)
}
