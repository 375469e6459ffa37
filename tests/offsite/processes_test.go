package offsite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

// inFolder are the options of every process of the proof; dir has the store, the copy and the user's state.
func inFolder(dir string) *varve.Options {
	return &varve.Options{StateDir: filepath.Join(dir, "state"), SegmentSize: 256 << 10}
}

// writing writes memories of its own until it is killed, and prints "began ID N TIME" before each and "acked ID N TIME"
// after it; the text of a memory has N.
func writing(ctx context.Context, _, dir string) error {
	st, err := varve.Open(ctx, filepath.Join(dir, "store"), inFolder(dir))
	if err != nil {
		return err
	}
	defer st.Close()
	who := fmt.Sprintf("w%d", os.Getpid())
	for n := 1; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%s-%d", who, n%7)
		err := told(id, n, func() error {
			_, err := st.Put(ctx, varve.Memory{ID: id, Content: textOf(n)})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// told calls write, which makes the n-th change of a key, and prints a line before it and one after it.
func told(key string, n int, write func() error) error {
	fmt.Printf("began %s %d %d\n", key, n, time.Now().UnixMicro())
	if err := write(); err != nil {
		return err
	}
	fmt.Printf("acked %s %d %d\n", key, n, time.Now().UnixMicro())
	time.Sleep(2 * time.Millisecond) // a load, not a flood: the machine is shared
	return nil
}

func textOf(n int) string { return fmt.Sprintf("number %d %s", n, strings.Repeat("x", n%1500)) }

// sending sends the log until it is killed.
func sending(ctx context.Context, _, dir string) error {
	o := inFolder(dir)
	o.Remote = varve.OpenFolder
	st, err := varve.Open(ctx, filepath.Join(dir, "store"), o)
	if err != nil {
		return err
	}
	defer st.Close()
	fmt.Println("open")
	<-ctx.Done()
	return nil
}

// write is a write as a writer has recorded it, in microseconds.
type write struct {
	n            int
	began, acked int64 // acked is 0 if the answer is unknown
}

// record has the writes of each memory in their order.
type record struct {
	mu     sync.Mutex
	writes map[string][]write
	acked  int
}

func (r *record) read(lines *bufio.Reader) {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var what, id string
		var n int
		var at int64
		if _, err := fmt.Sscan(line, &what, &id, &n, &at); err != nil {
			continue
		}
		r.mu.Lock()
		if what == "began" {
			r.writes[id] = append(r.writes[id], write{n: n, began: at})
		} else {
			w := r.writes[id]
			w[len(w)-1].acked = at
			r.acked++
		}
		r.mu.Unlock()
	}
}

// compare compares a store with the record at a moment: each memory has a text that was begun by then, and none that
// was acknowledged by then is missing.
func (r *record) compare(t *testing.T, dir string, o *varve.Options, at int64) {
	t.Helper()
	ro := *o
	ro.ReadOnly = true
	st, err := varve.Open(t.Context(), dir, &ro)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var list []string
	for m, err := range st.Memories(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m.ID)
	}
	for _, id := range list {
		if r.writes[id] == nil {
			t.Fatalf("%s was never written", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.writes)) {
		least, most := 0, 0
		for _, w := range r.writes[id] {
			if w.acked != 0 && w.acked < at {
				least = w.n
			}
			if w.began <= at {
				most = w.n
			}
		}
		m, err := st.Get(t.Context(), id)
		if errors.Is(err, errs.ErrNotFound) && least == 0 {
			continue
		}
		if err != nil {
			t.Fatalf("%s at %d: %v", id, at, err)
		}
		n := 0
		if _, err := fmt.Sscanf(m.Content, "number %d", &n); err != nil || m.Content != textOf(n) {
			t.Fatalf("%s has a text that was never written: %q, %v", id, m.Content, err)
		}
		if n < least || n > most {
			t.Fatalf("%s at %d has number %d; acknowledged by then: %d, begun: %d", id, at, n, least, most)
		}
	}
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// TestKilledSender: while two processes write, the sender is killed at random moments and the copy is taken away and
// brought back. Every moment that is cloned equals the record of the writers, and the last one is the store byte for
// byte.
func TestKilledSender(t *testing.T) {
	proofs.ManyProcesses(t, "writers and senders are processes")
	ctx, dir := t.Context(), t.TempDir()
	rng := rand.New(rand.NewPCG(storetest.Seed(t, "./tests/offsite"), 0))
	o := inFolder(dir)
	store, place := filepath.Join(dir, "store"), filepath.Join(dir, "remote")
	url := "file://" + filepath.ToSlash(place)
	st, err := varve.Open(ctx, store, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := varve.CreateFolder(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Admin().Offsite().Add(ctx, r, url); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	first := time.Now()
	rec := &record{writes: map[string][]write{}}
	var writers []*exec.Cmd
	var reading sync.WaitGroup
	for range 2 {
		cmd, lines := storetest.Start(t, "write", dir)
		writers = append(writers, cmd)
		reading.Go(func() { rec.read(lines) })
	}
	for round := range storetest.Repeat(t, 4) {
		cmd, lines := storetest.Start(t, "send", dir)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(time.Duration(500+rng.IntN(3000)) * time.Millisecond)
		if round%2 == 1 { // the disk of the copy is away for a while
			if err := os.Rename(place, place+".away"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(until) / 2)
			if err := os.Rename(place+".away", place); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Until(until))
		kill(cmd)
	}
	for _, w := range writers {
		_ = w.Process.Kill()
	}
	reading.Wait() // before Wait, which closes the pipes
	for _, w := range writers {
		_ = w.Wait()
	}
	last := time.Now()
	if rec.acked < 100 {
		t.Fatalf("only %d writes", rec.acked)
	}
	if st, err = varve.Open(ctx, store, o); err != nil {
		t.Fatal(err)
	}
	if err := st.Admin().Offsite().Send(ctx, r); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	o.NoBackground = true
	clone := filepath.Join(dir, "clone")
	if _, err := varve.Clone(ctx, r, clone, &varve.CloneOptions{Options: o}); err != nil {
		t.Fatal(err)
	}
	storetest.SameTexts(t, "the last moment", files(t, clone), files(t, store))
	ids := slices.Sorted(maps.Keys(rec.writes))
	storetest.SameTexts(t, "history", versions(t, clone, o, ids), versions(t, store, o, ids))
	rec.compare(t, clone, o, last.UnixMicro())
	moments := storetest.Repeat(t, 6)
	for i := range moments {
		at := first.Add(time.Duration(rng.Int64N(int64(last.Sub(first))))).Truncate(time.Microsecond)
		to := filepath.Join(dir, fmt.Sprintf("at%d", i))
		if _, err := varve.Clone(ctx, r, to, &varve.CloneOptions{At: at, Options: o}); err != nil {
			t.Fatalf("%v: %v", at, err)
		}
		rec.compare(t, to, o, at.UnixMicro())
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d acknowledged writes, %d moments", rec.acked, moments)
}
