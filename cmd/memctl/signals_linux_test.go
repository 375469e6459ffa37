package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// A signal ends a command within promised; a loaded machine, on which the processes of a
// test wait for each other too, gets margin on top.
const (
	promised = 2 * time.Second
	margin   = 6 * time.Second
)

// waiter is one memctl that is brought to wait and then gets a signal.
type waiter struct {
	t      *testing.T
	name   string
	dir    string
	cmd    *exec.Cmd
	errOut lockedBuffer
	ended  chan struct{}
}

// each runs a function for all cases, many at once: they wait, most of the time.
func (s *waits) each(t *testing.T, f func(w *waiter, c *commandCase)) {
	everyCommand(t, commandCases, "commandCases (command_cases_test.go)")
	slots := make(chan struct{}, 8)
	var all sync.WaitGroup
	for name, c := range commandCases {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			w := s.waiter(t, name)
			c.args = c.with("", w.dir, s.words)
			f(w, &c)
		})
	}
	all.Wait()
}

// waits is what the cases of a test share.
type waits struct {
	memctl, template string
	words            *strings.Replacer
	env              []string
}

func newWaits(t *testing.T) *waits {
	t.Helper()
	proofs.ManyProcesses(t, "every command is a process, and waits")
	path, err := exec.LookPath("memctl") // demo starts itself by its name
	if err != nil {
		t.Fatal(err)
	}
	s := &waits{memctl: path, template: t.TempDir()}
	s.words = storeOfCases(t, s.template)
	return s
}

func (s *waits) waiter(t *testing.T, name string) *waiter {
	dir, err := os.MkdirTemp(s.template+"/..", "case")
	if err != nil {
		t.Error(err)
	}
	if out, err := exec.Command("cp", "-a", s.template+"/.", dir).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	w := &waiter{t: t, name: name, dir: dir, cmd: exec.Command(s.memctl), ended: make(chan struct{})}
	w.cmd.Dir, w.cmd.Stderr = dir, &w.errOut
	w.cmd.Env = append(append(os.Environ(), "VARVE_STORE="+filepath.Join(dir, "storage"), "VISUAL=", "EDITOR=true", "XDG_DATA_HOME="+dir), s.env...)
	return w
}

func (w *waiter) start(args ...string) {
	w.cmd.Args = append(append(w.cmd.Args, strings.Fields(w.name)...), args...)
	if err := w.cmd.Start(); err != nil {
		w.t.Errorf("memctl %q: %v", w.cmd.Args[1:], err)
		close(w.ended)
		return
	}
	go func() {
		_ = w.cmd.Wait()
		close(w.ended)
	}()
}

// until waits until a thread of the process is in a call of the system; false when it
// has ended before.
func (w *waiter) until(in func(call string) bool) bool {
	for late := time.Now().Add(time.Minute); ; {
		select {
		case <-w.ended:
			return false
		default:
		}
		calls, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", w.cmd.Process.Pid))
		for _, path := range calls {
			if b, err := os.ReadFile(path); err == nil && in(string(b)) {
				return true
			}
		}
		if time.Now().After(late) {
			w.t.Errorf("memctl %q neither waits nor ends\n%s", w.cmd.Args[1:], w.errOut.String())
			_ = w.cmd.Process.Kill()
			<-w.ended
			return false
		}
		time.Sleep(5 * time.Millisecond) // between two looks
	}
}

func inCall(nr int, fd string) func(string) bool {
	prefix := fmt.Sprintf("%d %s", nr, fd)
	return func(call string) bool { return strings.HasPrefix(call, prefix) }
}

// signalled sends a signal, and wants the end in time and the code of an interruption. It
// says whether the end came as soon as promised: one that came later for want of a
// processor may have had none for last words either.
func (w *waiter) signalled(by os.Signal, codes ...int) (prompt bool) {
	began := time.Now()
	if err := w.cmd.Process.Signal(by); err != nil {
		w.t.Errorf("memctl %q: %v", w.cmd.Args[1:], err)
	}
	select {
	case <-w.ended:
	case <-time.After(promised + margin):
		w.t.Errorf("memctl %q goes on %v after %v\n%s", w.cmd.Args[1:], promised+margin, by, w.errOut.String())
		_ = w.cmd.Process.Kill()
		<-w.ended
		return false
	}
	took := time.Since(began)
	if took > promised {
		w.t.Logf("memctl %q took %v: more than %v, within the margin of a loaded machine", w.cmd.Args[1:], took, promised)
	}
	code := w.cmd.ProcessState.ExitCode()
	if !slices.Contains(w.cmd.Args, "--json") && code == cli.CodeInterrupted && took <= promised && !strings.Contains(w.errOut.String(), "interrupted") {
		w.t.Errorf("memctl %q does not say that it was interrupted: %s", w.cmd.Args[1:], w.errOut.String())
	}
	for _, c := range append(codes, cli.CodeInterrupted) {
		if code == c {
			return took <= promised
		}
	}
	w.t.Errorf("memctl %q: exit code %d after %v, want %d\n%s", w.cmd.Args[1:], code, by, cli.CodeInterrupted, w.errOut.String())
	return false
}

// lock holds locks of the store as another process does.
func (w *waiter) lock(names ...string) (release func()) {
	var held []*os.File
	for _, name := range names {
		f, err := os.OpenFile(filepath.Join(w.dir, "storage", "wal", name+".lock"), os.O_RDWR, 0)
		if err == nil {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
			held = append(held, f)
		}
		if err != nil {
			w.t.Error(err)
		}
	}
	return func() {
		for _, f := range held {
			_ = f.Close()
		}
	}
}

// A command that waits for a lock, for as long as it may, ends; what it had acknowledged is
// there, and the store is sound.
func TestSignalWhileLocked(t *testing.T) {
	t.Parallel()
	s := newWaits(t)
	for _, state := range []struct {
		locks []string
		must  func(c *commandCase) bool
		by    os.Signal
	}{
		{[]string{"append", "flush"}, func(c *commandCase) bool { return c.writes }, syscall.SIGTERM},
		{[]string{"open", "attach"}, func(c *commandCase) bool { return c.opens }, os.Interrupt},
	} {
		s.each(t, func(w *waiter, c *commandCase) {
			if (w.name == "watch" || w.name == "serve" || w.name == "ui") && !state.must(c) {
				return // it needs none, and goes on: see watching
			}
			release := w.lock(state.locks...)
			defer release()
			var out bytes.Buffer
			w.cmd.Stdout = &out
			args := append(c.args, "--wait", "1h")
			if !c.plain {
				args = append(args, "--json")
			}
			w.start(args...)
			if !w.until(inCall(unix.SYS_FLOCK, "")) {
				if state.must(c) {
					t.Errorf("memctl %q does not wait for %q: this case shows nothing\n%s%s", w.cmd.Args[1:], state.locks, out.String(), w.errOut.String())
				}
				return
			}
			prompt := w.signalled(state.by)
			var d struct{ Error cli.Failure }
			if err := json.Unmarshal(out.Bytes(), &d); !c.plain && prompt && (err != nil || d.Error.Kind != "interrupted") {
				t.Errorf("memctl %q: %v: %s", w.cmd.Args[1:], err, out.String())
			}
			release()
			if w.name == "note adopt" { // the same command completes it
				again := exec.Command(w.cmd.Path, w.cmd.Args[1:]...)
				again.Dir, again.Env = w.cmd.Dir, w.cmd.Env
				if out, err := again.CombinedOutput(); err != nil {
					t.Errorf("memctl %q once more: %v\n%s", w.cmd.Args[1:], err, out)
				}
			}
			if out, err := exec.Command(w.cmd.Path, "verify", "--store", filepath.Join(w.dir, "storage")).CombinedOutput(); err != nil {
				t.Errorf("verify after memctl %q: %v\n%s", w.cmd.Args[1:], err, out)
			}
		})
	}
}

// A command whose output nobody takes ends.
func TestSignalWhileWriting(t *testing.T) {
	t.Parallel()
	s := newWaits(t)
	s.each(t, func(w *waiter, c *commandCase) {
		if c.silent {
			return
		}
		r, out := fullPipe(t)
		defer r.Close()
		w.cmd.Stdout = out
		if w.name == "mcp" {
			w.cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n")
		}
		args := c.args
		if !c.plain {
			args = append(args, "--json")
		}
		w.start(args...)
		_ = out.Close()
		if !w.until(inCall(unix.SYS_WRITE, "0x1 ")) {
			t.Errorf("memctl %q does not write: this case shows nothing\n%s", w.cmd.Args[1:], w.errOut.String())
			return
		}
		w.signalled(syscall.SIGTERM, cli.CodeOK)
	})
}

// fullPipe is a pipe that takes nothing more, for a process that waits in its writes.
func fullPipe(t *testing.T) (r, w *os.File) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Error(err)
	}
	for _, b := range [][]byte{make([]byte, 4096), make([]byte, 1)} {
		for {
			if _, err := unix.Write(fds[1], b); err != nil {
				break
			}
		}
	}
	if err := unix.SetNonblock(fds[1], false); err != nil {
		t.Error(err)
	}
	return os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
}

// A command that reads what nobody writes ends.
func TestSignalWhileReading(t *testing.T) {
	t.Parallel()
	s := newWaits(t)
	readers := 0
	s.each(t, func(w *waiter, c *commandCase) {
		if c.stdin == nil {
			return
		}
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			t.Error(err)
		}
		in := os.NewFile(uintptr(fds[0]), "in")
		defer unix.Close(fds[1])
		w.cmd.Stdin = in
		w.start(c.stdin...)
		_ = in.Close()
		if !w.until(inCall(unix.SYS_READ, "0x0 ")) {
			t.Errorf("memctl %q does not read: this case shows nothing\n%s", w.cmd.Args[1:], w.errOut.String())
			return
		}
		codes := []int{}
		if w.name == "mcp" {
			codes = append(codes, cli.CodeOK) // a server that is told to end ends well
		}
		w.signalled(os.Interrupt, codes...)
	})
	for _, c := range commandCases {
		if c.stdin != nil {
			readers++
		}
	}
	if readers < 6 {
		t.Errorf("%d commands read stdin", readers)
	}
}

// What else a command waits for: an editor, changes, a service.
func TestSignalElsewhere(t *testing.T) {
	t.Parallel()
	s := newWaits(t)
	asked := make(chan struct{}, 16)
	hang := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-hang:
		}
	}))
	defer service.Close()
	defer close(hang)
	s.env = []string{"VARVE_EMBED_URL=" + service.URL, "VARVE_EMBED_MODEL=m", "VARVE_EMBED_KEY=k", "VARVE_EMBED_DIMENSIONS=8"}
	for _, args := range [][]string{{"put", "x"}, {"search", "words"}, {"reindex"}, {"reindex", "--missing"}, {"import", "lines.jsonl"}} {
		for _, by := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			w := s.waiter(t, args[0])
			for len(asked) > 0 { // of the one before
				<-asked
			}
			w.start(args[1:]...)
			select {
			case <-asked:
				w.signalled(by)
			case <-w.ended:
				t.Errorf("memctl %q asks no service: this case shows nothing\n%s", args, w.errOut.String())
			}
		}
	}
	s.env = nil
	for _, by := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		editing(t, s, by)
		watching(t, s, by)
	}
}

// watching: what is locked is no reason to go on.
func watching(t *testing.T, s *waits, by os.Signal) {
	w := s.waiter(t, "watch")
	release := w.lock("append", "flush")
	defer release()
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.cmd.Stdout = out
	w.start("--since", "0")
	_ = out.Close()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatalf("%v\n%s", err, w.errOut.String())
	}
	w.signalled(by)
}

// editing: the editor ends too, and the message names the text.
func editing(t *testing.T, s *waits, by os.Signal) {
	w := s.waiter(t, "edit")
	pipe := filepath.Join(w.dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(w.dir, "editor"), "#!/bin/sh\necho $$ >"+pipe+"\nexec sleep 1000\n")
	if err := os.Chmod(filepath.Join(w.dir, "editor"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.cmd.Env = append(w.cmd.Env, "EDITOR="+filepath.Join(w.dir, "editor"), "TMPDIR="+w.dir)
	w.start("a")
	r, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var pid int
	if _, err := fmt.Fscan(r, &pid); err != nil {
		t.Fatal(err, w.errOut.String())
	}
	w.signalled(by)
	if err := unix.Kill(pid, 0); err == nil {
		t.Errorf("the editor, process %d, goes on", pid)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	kept, err := filepath.Glob(filepath.Join(w.dir, "memctl-edit-*", "a.json"))
	if err != nil || len(kept) != 1 || !strings.Contains(w.errOut.String(), kept[0]) {
		t.Errorf("%q, %v: %s", kept, err, w.errOut.String())
	}
}
