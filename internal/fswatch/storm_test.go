package fswatch_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fswatch"
	"github.com/varve-db/varve/internal/proofs"
)

// FAILURES 68 with real watchers: two hosts with a watcher each write the same memories. Neither treats
// a file that the other one flushes as an edit; a real edit in between is adopted.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "mine", "one")
	n := 1500
	if !proofs.Long() {
		n = 500
	}
	_, out := startChild(t, fmt.Sprintf("puts:%d", n), h.dir)
	if line, err := out.ReadString('\n'); err != nil || line != "open\n" {
		t.Fatal(line, err)
	}
	done := make(chan error, 1)
	var said []string
	go func() {
		for {
			line, err := out.ReadString('\n')
			if line != "" {
				said = append(said, line)
			}
			if err != nil {
				done <- nil
				return
			}
		}
	}()
	// In one step: between emptying a file and writing it, a busy machine may pause for longer than the
	// watcher waits.
	h.saveByRename(h.path("mine"), h.edited("mine", "one", "edited in a storm"))
	for i := range n {
		h.put(fmt.Sprint("k", i%500), fmt.Sprint("host ", i))
	}
	<-done
	h.await(varve.EventAdopted, "mine", nil)
	h.want("mine", "edited in a storm")
	h.flush()
	if len(said) == 0 || said[len(said)-1] != "closed\n" {
		t.Errorf("the other host: %q", said)
	}
	for _, line := range said {
		if strings.HasPrefix(line, "event ") {
			t.Errorf("the other host: %s", line)
		}
	}
	if n := h.count(varve.EventAdopted); n != 1 {
		t.Errorf("%d adopted", n)
	}
	h.nothingElse(varve.EventDeleted)
}

// When the host that watches is killed, another one takes over, and finds what was edited in between.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	cmd, out := startChild(t, "watch", dir)
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, string(varve.EventWatching)) {
			break
		}
	}
	h := openHost(t, dir, quick)
	h.put("a", "one")
	h.put("b", "two")
	h.flush()
	if got := h.st.Admin().Stats().Watcher; got != cmd.Process.Pid {
		t.Fatalf("%d watches, want %d", got, cmd.Process.Pid)
	}
	h.save(h.path("a"), h.edited("a", "one", "seen by the other"))
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(line, err)
		}
		if strings.Contains(line, string(varve.EventAdopted)+" a ") {
			break
		}
	}
	h.want("a", "seen by the other")
	if n := h.count(varve.EventAdopted) + h.count(varve.EventWatching); n > 0 {
		t.Errorf("while another one watches: %d events", n)
	}
	h.save(h.path("b"), h.edited("b", "two", "by nobody")) // the watching host is killed before that file is quiet
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.await(varve.EventWatching, "", nil)
	h.await(varve.EventAdopted, "b", nil)
	h.want("b", "by nobody")
	if got := h.st.Admin().Stats().Watcher; got != os.Getpid() {
		t.Errorf("%d watches, want %d", got, os.Getpid())
	}
}

// TestOverflow verifies that all files are checked if more happened than the system could report.
func TestOverflow(t *testing.T) {
	t.Parallel()
	src := fswatch.NewTold()
	h := watched(t, quick.ByTold(src), "a", "one", "b", "two", "c", "three")
	h.saveByRename(h.path("a"), h.edited("a", "one", "not told"))
	h.save(h.path("new"), `{"id":"new","content":"neither"}`)
	h.remove("c")
	src.All()
	h.await(varve.EventWatching, "", func(e varve.Event) bool { return errors.Is(e.Err, varve.ErrLimit) })
	h.until("all was found", func() bool {
		return h.count(varve.EventAdopted) == 2 && h.count(varve.EventDeleted) == 1
	})
	h.want("a", "not told")
	h.want("new", "neither")
	h.want("b", "two")
	h.nothingElse()
}

// TestLimit verifies that all files are checked repeatedly if nothing can be watched because a limit is reached, that
// this is reported once, and that notifications are used when they are available again.
func TestLimit(t *testing.T) {
	t.Parallel()
	limit := &os.SyscallError{Syscall: "inotify_init1", Err: syscall.EMFILE}
	fail := make(chan bool, 1000)
	for range 6 {
		fail <- true
	}
	o := quick.Failing(func() error {
		select {
		case <-fail:
			return limit
		default:
			return nil
		}
	})
	h := openHost(t, filepath.Join(t.TempDir(), "store"), o)
	e := h.await(varve.EventWatching, "", nil)
	if !errors.Is(e.Err, syscall.EMFILE) || !strings.Contains(e.Note, "checking all files") {
		t.Errorf("%+v", e)
	}
	h.put("a", "one")
	h.put("b", "two")
	h.flush()
	h.save(h.path("a"), h.edited("a", "one", "found"))
	h.await(varve.EventAdopted, "a", nil)
	e = h.await(varve.EventWatching, "", nil)
	if e.Err != nil || !strings.Contains(e.Note, "notifications") || h.count(varve.EventWatching) != 2 {
		t.Errorf("%+v", e)
	}
	h.save(h.path("b"), h.edited("b", "two", "told"))
	h.await(varve.EventAdopted, "b", nil)
	h.nothingElse()
}

var checkoutFiles = flag.Int("files", 300, "how many files TestCheckout has")

// TestCheckout checks out another branch with git:
//
//	go test ./fswatch -run Checkout -files 5000
func TestCheckout(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("shared data: git is not installed; apt install git")
	}
	n := *checkoutFiles
	if !proofs.Long() {
		n = 100
	}
	h := watched(t, quick)
	b := new(varve.Batch)
	for i := range n {
		b.Put(varve.Memory{ID: fmt.Sprint("k", i), Content: fmt.Sprint("main ", i)})
	}
	if err := h.st.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	h.flush()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(git, append([]string{"-c", "user.name=n", "-c", "user.email=e@x", "-c", "core.autocrlf=false"}, args...)...)
		cmd.Dir = h.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	run("init", "-q", "-b", "main")
	run("add", "-A")
	run("commit", "-qm", "main")
	// A branch in which every file was edited by hand, some were deleted, and one was created.
	work := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.Command(git, "clone", "-q", h.dir, work).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i := range n {
		path := filepath.Join(work, "memories", fmt.Sprintf("k%d.json", i))
		if i%100 == 7 {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		h.save(path, strings.Replace(string(text), "main ", "branch ", 1))
	}
	h.save(filepath.Join(work, "memories", "made.json"), `{"id":"made","content":"in the branch"}`)
	for _, args := range [][]string{{"checkout", "-qb", "branch"}, {"add", "-A"}, {"commit", "-qm", "branch"}, {"push", "-q", "origin", "branch"}} {
		cmd := exec.Command(git, append([]string{"-c", "user.name=n", "-c", "user.email=e@x"}, args...)...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	run("checkout", "-q", "branch")
	h.until("the branch is adopted", func() bool {
		return h.count(varve.EventAdopted) >= n-n/100+1 && h.count(varve.EventDeleted) >= n/100
	})
	for i := range n {
		if id := fmt.Sprint("k", i); i%100 == 7 {
			if _, err := h.st.Get(t.Context(), id); !errors.Is(err, varve.ErrNotFound) {
				t.Fatalf("%s: %v", id, err)
			}
		} else {
			h.want(id, fmt.Sprint("branch ", i))
		}
	}
	h.want("made", "in the branch")
	h.flush()
	h.nothingElse()
}
