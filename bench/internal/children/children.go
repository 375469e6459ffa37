package children

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
)

// ready is the line that a child writes when it has opened the store.
const ready = "ready"

// Children are processes of this program that work on one store. The zero value has none.
type Children struct {
	all   []child
	ready int // number of processes that have reported that they are ready
}

type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start starts one more process, with the given arguments.
func (c *Children) Start(args ...string) error {
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

// AwaitReady blocks until all started processes are ready.
func (c *Children) AwaitReady() error {
	for ; c.ready < len(c.all); c.ready++ {
		line, err := c.all[c.ready].out.ReadString('\n')
		if err != nil {
			return fmt.Errorf("a process did not begin: %w", err)
		}
		if line != ready+"\n" {
			return fmt.Errorf("a process did not begin: its output is %q", line)
		}
	}
	return nil
}

// Begin lets all processes begin: it writes the line for which AwaitBegin waits in the child.
func (c *Children) Begin(line string) error {
	for _, k := range c.all {
		if _, err := io.WriteString(k.in, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// ResultsOf decodes the result that each process writes, in the order in which the processes were started.
func ResultsOf[T any](c *Children, take func(T)) error {
	for _, k := range c.all {
		var v T
		if err := json.NewDecoder(k.out).Decode(&v); err != nil {
			return fmt.Errorf("reading the result of a process: %w", err)
		}
		take(v)
	}
	return nil
}

// Close waits until all processes have ended, and joins their errors to err.
func (c *Children) Close(err error) error {
	for _, k := range c.all {
		_ = k.in.Close() // one that has not begun does not begin
	}
	for _, k := range c.all {
		_, rerr := io.Copy(io.Discard, k.out) // a result that nobody took would keep it
		err = errors.Join(err, rerr, k.cmd.Wait())
	}
	return err
}

// Kill kills all processes and waits until they have ended. It returns an error for a process that ended before.
func (c *Children) Kill() (err error) {
	for _, k := range c.all {
		err = errors.Join(err, k.cmd.Process.Kill())
		_ = k.in.Close()
		werr := k.cmd.Wait()
		if runtime.GOOS != "windows" && k.cmd.ProcessState.Exited() { // there, killed is exited
			err = errors.Join(err, fmt.Errorf("a process ended before it was killed: %w",
				cmp.Or(werr, errors.New("with success"))))
		}
	}
	return err
}

// AwaitBegin is called in the child: it reports that this process is ready, and waits for the line that Begin
// writes.
func AwaitBegin() (line string, err error) {
	fmt.Println(ready)
	return bufio.NewReader(os.Stdin).ReadString('\n')
}
