package fswatch_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/scratch"

	"go.uber.org/goleak"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fswatch"
	"github.com/varve-db/varve/internal/storetest"
)

// TestMain runs the tests, or, if FSWATCH_CHILD names a job, that job as the other host.
func TestMain(m *testing.M) {
	if job := os.Getenv("FSWATCH_CHILD"); job != "" {
		if err := child(job, os.Getenv("FSWATCH_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(scratch.Around(m))
}

// quick has the short waits of a test.
var quick = fswatch.Options{Quiet: 60 * time.Millisecond, Gone: 150 * time.Millisecond, Sweep: 200 * time.Millisecond}

// child opens the store, with a watcher. "watch" does nothing until the process is killed, "puts:N" also
// writes N memories, "unclean" writes two and is killed.
func child(job, dir string) error {
	ctx := context.Background()
	st, err := varve.Open(ctx, dir, storetest.In(&varve.Options{Listener: func(e varve.Event) {
		switch e.Kind {
		case varve.EventWatching, varve.EventAdopted, varve.EventEdit, varve.EventDrift, varve.EventDeleted,
			varve.EventCorruption, varve.EventRestored:
			fmt.Printf("event %s %s %s %v\n", e.Kind, e.ID, e.Path, e.Err)
		}
	}}, storetest.Environment{Watcher: fswatch.New(quick)}))
	if err != nil {
		return err
	}
	fmt.Println("open")
	if job == "unclean" { // what is only in the log
		for _, id := range []string{"a", "b"} {
			if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "acknowledged " + id}); err != nil {
				return err
			}
		}
		p, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		_ = p.Kill()
		select {}
	}
	var n int
	if _, err := fmt.Sscanf(job, "puts:%d", &n); err != nil {
		select {}
	}
	for i := range n {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i%500), Content: fmt.Sprint("child ", i)}); err != nil {
			return err
		}
	}
	if err := st.Close(); err != nil {
		return err
	}
	fmt.Println("closed")
	return nil
}

func startChild(t *testing.T, job, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "FSWATCH_CHILD="+job, "FSWATCH_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewReader(out)
}

// host is an open store and its events.
type host struct {
	t   *testing.T
	dir string
	st  *varve.Store

	mu     sync.Mutex
	more   *sync.Cond
	events []varve.Event
	read   int // of the events, by await
}

func openHost(t *testing.T, dir string, o fswatch.Options) *host {
	t.Helper()
	h := &host{t: t, dir: dir}
	h.more = sync.NewCond(&h.mu)
	st, err := varve.Open(t.Context(), dir,
		storetest.In(&varve.Options{Listener: h.heard, CacheBytes: -1}, storetest.Environment{Watcher: fswatch.New(o)}))
	if err != nil {
		t.Fatal(err)
	}
	h.st = st
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, e := range h.events[max(0, len(h.events)-30):] {
				t.Logf("event %s: %s %s %q %d: %v", e.Kind, e.ID, e.Path, e.Note, e.Count, e.Err)
			}
		}
	})
	return h
}

// watched returns a host that watches, and has put memories given as id and content.
func watched(t *testing.T, o fswatch.Options, puts ...string) *host {
	t.Helper()
	h := openHost(t, filepath.Join(t.TempDir(), "store"), o)
	h.await(varve.EventWatching, "", nil)
	for i := 0; i < len(puts); i += 2 {
		h.put(puts[i], puts[i+1])
	}
	h.flush()
	return h
}

func (h *host) heard(e varve.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
	h.more.Broadcast()
}

const deadline = 20 * time.Second

// await returns the next event of a kind, about an id ("": any), for which is returns true.
func (h *host) await(kind varve.EventKind, id string, is func(varve.Event) bool) varve.Event {
	h.t.Helper()
	late := time.AfterFunc(deadline, func() { h.more.Broadcast() })
	defer late.Stop()
	began := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		for i := h.read; i < len(h.events); i++ {
			if e := h.events[i]; e.Kind == kind && (id == "" || e.ID == id) && (is == nil || is(e)) {
				h.read = i + 1
				return e
			}
		}
		if time.Since(began) >= deadline {
			h.t.Fatalf("nothing was said of %q of %q", kind, id)
		}
		h.more.Wait()
	}
}

// count returns how many events of a kind there were.
func (h *host) count(kind varve.EventKind) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func (h *host) put(id, content string) {
	h.t.Helper()
	if _, err := h.st.Put(h.t.Context(), varve.Memory{ID: id, Content: content}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) flush() {
	h.t.Helper()
	if err := h.st.Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) content(id string) string {
	h.t.Helper()
	m, err := h.st.Get(h.t.Context(), id)
	if err != nil {
		return "error: " + err.Error()
	}
	return m.Content
}

func (h *host) want(id, content string) {
	h.t.Helper()
	if got := h.content(id); got != content {
		h.t.Fatalf("%s is %q, want %q", id, got, content)
	}
}

func (h *host) path(id string) string { return filepath.Join(h.dir, "memories", id+".json") }

func (h *host) text(id string) string {
	h.t.Helper()
	b, err := os.ReadFile(h.path(id))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// edited returns the text of a file with old replaced by new.
func (h *host) edited(id, old, new string) string {
	h.t.Helper()
	text := h.text(id)
	if !strings.Contains(text, old) {
		h.t.Fatalf("%s does not have %q: %s", id, old, text)
	}
	return strings.Replace(text, old, new, 1)
}

func (h *host) save(path, text string) {
	h.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// saveByRename saves as most editors do.
func (h *host) saveByRename(path, text string) {
	h.t.Helper()
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".swp")
	h.save(temp, text)
	if err := os.Rename(temp, path); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) quarantined() (names []string) {
	h.t.Helper()
	list, err := os.ReadDir(filepath.Join(h.dir, "quarantine"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range list {
		if !strings.HasSuffix(e.Name(), ".note.json") {
			names = append(names, e.Name())
		}
	}
	return names
}

// nothingElse fails the test if anything else was adopted, set aside or reported.
func (h *host) nothingElse(also ...varve.EventKind) {
	h.t.Helper()
	for _, kind := range append(also, varve.EventEdit, varve.EventDrift, varve.EventCorruption, varve.EventRestored) {
		if n := h.count(kind); n > 0 {
			h.t.Errorf("%d times %q", n, kind)
		}
	}
	if q := h.quarantined(); len(q) > 0 {
		h.t.Errorf("in quarantine: %q", q)
	}
}
