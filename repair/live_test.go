package repair_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/repair"
)

// TestRepairLive repairs a store that other processes have open.
func TestRepairLive(t *testing.T) {
	t.Parallel()
	st, dir := store(t)
	remove(t, file(dir, memoryPath(9)))
	remove(t, file(dir, memoryPath(settled+1)))
	flip(t, file(dir, memoryPath(20)), 60)
	b := bytesOf(t, file(dir, memoryPath(30)))
	write(t, file(dir, "memories/new.json"), bytes.Replace(b, []byte(id(30)), []byte("new"), 1))
	write(t, file(dir, "memories/copy.json"), b)
	p := planOf(t, dir)
	if p.Alone() > 0 || !slices.Equal(p.Processes, []int{os.Getpid()}) {
		t.Errorf("%d wait for %v: %v", p.Alone(), p.Processes, p.Actions)
	}
	apply(t, p)
	for _, id := range []string{id(9), id(settled + 1), id(20), "new"} {
		if _, err := st.Get(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if list := alarms(t, st, varve.VerifyOptions{}); len(list) > 0 {
		t.Error(list)
	}
	// Damage in the log waits until they have ended.
	name := pendingSegmentOr(t, dir)
	flip(t, name, 5000)
	p = planOf(t, dir)
	if p.Alone() != 1 {
		t.Fatal(p.Actions)
	}
	r, err := p.Apply(t.Context())
	if !errors.Is(err, varve.ErrLocked) || len(r.Waiting) != 1 || !slices.Equal(r.Processes, []int{os.Getpid()}) {
		t.Errorf("%v %+v", err, r)
	}
	if err := st.Close(); err != nil {
		t.Log(err)
	}
	apply(t, p)
}

// pendingSegmentOr returns the newest segment that holds entries.
func pendingSegmentOr(t *testing.T, dir string) string {
	name, _ := lastFrame(t, dir)
	return name
}

// TestDeletedReturns: the file of a deleted memory that returns, from the trash, a backup or an editor,
// becomes a new version of it, as where a process watches the files; also when index and overlay no
// longer know the memory.
func TestDeletedReturns(t *testing.T) {
	t.Parallel()
	st, dir := store(t)
	old := bytesOf(t, file(dir, memoryPath(9)))
	info, err := os.Stat(file(dir, memoryPath(9)))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(t.Context(), id(9)); err != nil {
		t.Fatal(err)
	}
	if err := st.Admin().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, file(dir, memoryPath(9)), old)
	if err := os.Chtimes(file(dir, memoryPath(9)), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	r := apply(t, planOf(t, dir))
	if len(r.Done) != 1 || r.Done[0].Do != repair.Adopt {
		t.Error(r.Done)
	}
	if _, ok := memories(t, dir)[id(9)]; !ok {
		t.Error("it has not returned")
	}
}

// notTheSameTick changes a folder until its mtime changes. The kernel takes the mtime from a clock with
// ticks of some milliseconds (ext4 too before Linux 6.13, tmpfs still): if a store is closed and a file
// removed within one tick, the store, which compares the mtime, does not notice the removal.
func notTheSameTick(t *testing.T, dir string) {
	t.Helper()
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	for {
		name := filepath.Join(dir, ".tick")
		write(t, name, nil)
		remove(t, name)
		if info, err := os.Stat(dir); err != nil || !info.ModTime().Equal(before.ModTime()) {
			return
		}
	}
}

// TestAutoRepair: opening restores a missing file that is in the log, and reports it.
func TestAutoRepair(t *testing.T) {
	t.Parallel()
	for _, auto := range []bool{true, false} {
		dir := closedStore(t)
		write(t, file(dir, "config.json"), fmt.Appendf(nil, `{"varve":1,"auto_repair":%v,"adopt_deletions":false}`, auto))
		n := settled + unspilt + pending - 1
		remove(t, file(dir, memoryPath(n)))
		notTheSameTick(t, file(dir, "memories"))
		st := openStore(t, dir, &varve.Options{})
		deadline := time.Now().Add(20 * time.Second)
		for st.Admin().OpenReport().Drift == nil && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		d := st.Admin().OpenReport().Drift
		if d == nil || !slices.Equal(d.Missing, []string{id(n)}) || auto != slices.Equal(d.Restored, d.Missing) {
			t.Errorf("auto_repair %v: %+v", auto, d)
		}
		_, err := os.Stat(file(dir, memoryPath(n)))
		if (err == nil) != auto {
			t.Errorf("auto_repair %v: %v", auto, err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRebuildIndex rebuilds the index beside a writer; the old one is kept.
func TestRebuildIndex(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	st, dir := store(t)
	other := openStore(t, dir, &varve.Options{NoBackground: true})
	before := contentsOf(t, st)
	for range 3 {
		if err := st.Admin().RebuildIndex(context.Background()); err != nil {
			t.Fatal(err)
		}
		put(t, other, 2000, 2010)
	}
	for i := 2000; i < 2010; i++ {
		before[id(i)] = memory(i).Content
	}
	compare(t, before, contentsOf(t, st))
	compare(t, before, contentsOf(t, other))
	if list := alarms(t, st, varve.VerifyOptions{}); len(list) > 0 {
		t.Error(list)
	}
	names, err := os.ReadDir(file(dir, "backups"))
	if err != nil || len(names) < 2 || !strings.HasPrefix(names[0].Name(), "memory_index.") {
		t.Error(names, err)
	}
}

func contentsOf(t *testing.T, st *varve.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for m, err := range st.Memories(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all[m.ID] = m.Content
	}
	return all
}
