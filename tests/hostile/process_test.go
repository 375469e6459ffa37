//go:build linux || darwin

package hostile

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The bounds of one run.
const (
	slow    = 2 * time.Second
	largest = 256 << 20 // resident
	told    = 4 << 20   // bytes of output that are kept
)

// result is the result of one run.
type result struct {
	code    int
	out     string
	err     string
	took    time.Duration
	rss     int64
	hung    bool // it had to be killed
	endless bool // it wrote more than told
}

// text returns everything that the command has written.
func (r *result) text() string { return r.out + r.err }

// environ returns the whole environment of a command.
func environ(b box) []string {
	return []string{
		"HOME=" + b.path(homeDir), "TMPDIR=" + b.path(tempDir), "XDG_STATE_HOME=" + b.path(stateDir), "PATH=" + os.Getenv("PATH"), "TZ=UTC", "NO_COLOR=1",
		"VARVE_STORE=", "VARVE_EMBED_URL=", "EDITOR=true",
	}
}

// capped keeps the beginning of an output, and counts the lines.
type capped struct {
	mu    sync.Mutex
	b     bytes.Buffer
	all   int
	lines int
	line  func(n int)
}

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.all += len(p)
	c.b.Write(p[:min(len(p), max(0, told-c.b.Len()))])
	c.lines += bytes.Count(p, []byte("\n"))
	n := c.lines
	c.mu.Unlock()
	if c.line != nil {
		c.line(n)
	}
	return len(p), nil
}

func (c *capped) text() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String(), c.all > told
}

// start runs memctl in the box, as an unprivileged user if nobody is set, within bounds.
func (c *command) start(b box, nobody bool) (*result, error) {
	if c.first != nil {
		begin := command{args: c.first}
		if r, err := begin.start(b, nobody); err != nil || r.hung {
			return r, err
		}
	}
	args := make([]string, len(c.args))
	for i, a := range c.args {
		args[i] = strings.ReplaceAll(a, "{box}", b.dir)
	}
	cmd := exec.Command(memctl(), args...)
	cmd.Dir, cmd.Env = b.path(subDir), append(environ(b), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if nobody && os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobodyID, Gid: nobodyID}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	var stdout, stderr capped
	var shut sync.Once
	end := func() { shut.Do(func() { _ = stdin.Close() }) }
	stdout.line = func(n int) {
		if c.mcp && n >= answers {
			end()
		}
	}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 2 * time.Second
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = io.WriteString(stdin, c.stdin)
	if !c.mcp {
		end()
	}
	r := new(result)
	r.hung = bound(cmd, c, end)
	r.took = time.Since(begun)
	end()
	var tooBig, tooLoud bool
	r.out, tooBig = stdout.text()
	r.err, tooLoud = stderr.text()
	r.endless = tooBig || tooLoud
	r.code = cmd.ProcessState.ExitCode()
	if use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.rss = int64(use.Maxrss)
		if runtime.GOOS != "darwin" {
			r.rss <<= 10
		}
	}
	return r, nil
}

// bound waits for the command; it reports whether it had to be killed. Go then prints where each
// goroutine is.
func bound(cmd *exec.Cmd, c *command, end func()) (hung bool) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	steps := []struct {
		after time.Duration
		do    func()
	}{
		{3 * time.Second, func() {
			end()
			if c.ends {
				_ = cmd.Process.Signal(os.Interrupt)
			}
		}},
		{*longest - 3*time.Second, func() { hung = true; _ = cmd.Process.Signal(syscall.SIGQUIT) }},
		// The whole group, before its leader is waited for: afterwards the number may belong to another
		// process.
		{2 * time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }},
	}
	for _, s := range steps {
		timer := time.NewTimer(s.after)
		select {
		case <-done:
			timer.Stop()
			return hung
		case <-timer.C:
			s.do()
		}
	}
	<-done
	return hung
}

const nobodyID = 65534
