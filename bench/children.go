package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// children are processes of this program that work on one store. Each opens it, says so, begins when it
// is told to, and gives its result as JSON.
type children struct {
	all   []child
	ready int // how many have said that they are
}

type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (c *children) start(args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	k := child{cmd: exec.Command(self, args...)}
	k.cmd.Stderr = os.Stderr
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	k.out = bufio.NewReader(out)
	if err := k.cmd.Start(); err != nil {
		return err
	}
	c.all = append(c.all, k)
	return nil
}

// wait returns when all that were started are ready.
func (c *children) wait() error {
	for ; c.ready < len(c.all); c.ready++ {
		if line, err := c.all[c.ready].out.ReadString('\n'); line != "ready\n" {
			return fmt.Errorf("a process did not begin: %q %w", line, err)
		}
	}
	return nil
}

// begin tells all of them the line at which they begin.
func (c *children) begin(line string) error {
	for _, k := range c.all {
		if _, err := io.WriteString(k.in, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// resultsOf decodes what each of them gives, in the order in which they were started.
func resultsOf[T any](c *children, take func(T)) error {
	for _, k := range c.all {
		var v T
		if err := json.NewDecoder(k.out).Decode(&v); err != nil {
			return fmt.Errorf("a process gave no result: %w", err)
		}
		take(v)
	}
	return nil
}

// close waits for their end, and adds what went wrong to err.
func (c *children) close(err error) error {
	for _, k := range c.all {
		k.in.Close()
		err = errors.Join(err, k.cmd.Wait())
	}
	return err
}
