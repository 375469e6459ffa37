package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

const (
	processCount         = 4
	goroutinesPerProcess = 16
)

// processes lets several of us put into one store at once. Each opens it, says
// so, and begins when all are ready.
func processes(name, dir, hot string, d time.Duration, seed uint64) (rate, longest float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	type child struct {
		cmd *exec.Cmd
		in  io.WriteCloser
		out *bufio.Reader
	}
	var all []child
	defer func() {
		for _, c := range all {
			c.in.Close()
			err = errors.Join(err, c.cmd.Wait())
		}
	}()
	for i := range processCount {
		c := child{cmd: exec.Command(self, "-worker", name, "-hot", hot, "-dir", dir, "-seconds", strconv.FormatFloat(d.Seconds(), 'f', -1, 64),
			"-seed", strconv.FormatUint(seed*processCount+uint64(i), 10))}
		c.cmd.Stderr = os.Stderr
		if c.in, err = c.cmd.StdinPipe(); err != nil {
			return 0, 0, err
		}
		out, err := c.cmd.StdoutPipe()
		if err != nil {
			return 0, 0, err
		}
		c.out = bufio.NewReader(out)
		if err := c.cmd.Start(); err != nil {
			return 0, 0, err
		}
		all = append(all, c)
	}
	for _, c := range all {
		if line, err := c.out.ReadString('\n'); line != "ready\n" {
			return 0, 0, fmt.Errorf("a process did not begin: %q %w", line, err)
		}
	}
	for _, c := range all {
		if _, err := io.WriteString(c.in, "go\n"); err != nil {
			return 0, 0, err
		}
	}
	for _, c := range all {
		var b [2]float64
		if err := json.NewDecoder(c.out).Decode(&b); err != nil {
			return 0, 0, fmt.Errorf("a process gave no result: %w", err)
		}
		rate, longest = rate+b[0], max(longest, b[1])
	}
	return rate, longest, nil
}

// worker is one of those processes.
func worker(name, dir, kind string, d time.Duration, seed uint64) error {
	for _, f := range engines() {
		e := f()
		if e.Name() != name {
			continue
		}
		if err := e.Open(dir); err != nil {
			return err
		}
		fmt.Println("ready")
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil {
			return err
		}
		var rate float64
		var longest time.Duration
		if kind == "" {
			var b burst
			b, err = puts(e, goroutinesPerProcess, d, mostPuts, seed)
			rate = b.rate
		} else {
			rate, longest, err = hot(e, kind, goroutinesPerProcess, d, seed)
		}
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode([2]float64{rate, longest.Seconds()}); err != nil {
			return err
		}
		return e.Close()
	}
	return fmt.Errorf("no engine %q", name)
}
