package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is a process that works on the store, as the judge sees it.
type process struct {
	slot, life int
	cmd        *exec.Cmd
	in         io.WriteCloser
	ready      chan struct{} // the process has opened the store
	paused     chan struct{}
	ended      chan struct{} // the output of the process was read to the end
	killed     bool
}

func (s *soak) start(slot, life int) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{slot: slot, life: life, ready: make(chan struct{}), paused: make(chan struct{}, 1),
		ended: make(chan struct{})}
	p.cmd = exec.Command(self, "-child", "-slot", strconv.Itoa(slot), "-life", strconv.Itoa(life), "-processes",
		strconv.Itoa(s.processes), "-goroutines", strconv.Itoa(s.goroutines),
		"-seed", strconv.FormatUint(s.seed+uint64(slot)<<32+uint64(life), 10), s.dir)
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go s.hear(p, bufio.NewReaderSize(out, 1<<16))
	return p, nil
}

// hear reads everything that the process reports. It ignores a line that a kill has cut off.
func (s *soak) hear(p *process, out *bufio.Reader) {
	defer close(p.ended)
	who := fmt.Sprintf("process %d.%d", p.slot, p.life)
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "ready":
			close(p.ready)
			continue
		case line == "paused":
			p.paused <- struct{}{}
			continue
		case strings.HasPrefix(line, "op "):
			var kind string
			var micros, at int64
			if _, err := fmt.Sscanf(line, "op %s %d %d", &kind, &micros, &at); err != nil {
				s.problem("%s: %s", who, line)
				continue
			}
			s.noteOp(kind, time.Duration(micros)*time.Microsecond, time.Duration(at))
			f := strings.SplitN(line, " ", 5)
			if len(f) < 5 {
				continue
			}
			line = f[4]
		}
		s.told.Line(who, line)
	}
}

// kill ends a process without a warning, and waits until its whole output is read.
func (p *process) kill() error {
	p.killed = true
	err := p.cmd.Process.Kill()
	<-p.ended
	_ = p.cmd.Wait() // killed
	_ = p.in.Close()
	return err
}

// end lets a process close the store and end.
func (p *process) end() error {
	err := p.in.Close()
	<-p.ended
	return errors.Join(err, p.cmd.Wait())
}

// figures returns the resident memory of a process in bytes, and the number of its open files.
func (p *process) figures() (memory, handles int64) {
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return 0, int64(len(fds)) // it has just ended, or the system does not tell
	}
	return resident * int64(os.Getpagesize()), int64(len(fds))
}

// onDisk returns the number of bytes and of files in a folder. It ignores files that disappear meanwhile.
func onDisk(dir string) (bytes, files int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			bytes += (info.Size() + 4095) &^ 4095
			files++
		}
		return nil
	})
	return bytes, files
}
