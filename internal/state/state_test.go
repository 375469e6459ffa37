package state

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

const store = "5d7a4a3e-0000-4000-8000-000000000001"

// next writes and loads a set with these memories at version lsn-1.
func next(t testing.TB, dir string, s *index.Set, lsn uint64, ids ...string) *index.Set {
	t.Helper()
	var ch index.Changes
	for _, id := range ids {
		e := index.Entry{Filepath: "memories/" + id + ".json", Version: lsn - 1, Size: 1}
		line, err := e.AppendMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		ch.List = append(ch.List, index.Change{Section: index.Memories, ID: id, Version: lsn - 1, Finished: line})
	}
	to := index.Target{FS: vfs.OS(), Dir: dir, Temp: filepath.Join(dir, "temp"), Store: store, LSN: lsn}
	if _, err := index.WriteBase(s, to, ch); err != nil {
		t.Fatal(err)
	}
	s, err := index.Load(vfs.OS(), dir, index.Want{Store: store, Spilled: lsn}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMomentOfMortals verifies that a caller that asks only for memories with a time to live gets no changes while no
// memory has one.
func TestMomentOfMortals(t *testing.T) {
	var s State
	if err := s.Begin(index.Empty(8), false); err != nil {
		t.Fatal(err)
	}
	var c record.Codec
	put := func(at uint64, id string, e index.Entry) {
		t.Helper()
		e.Filepath = "memories/" + id + ".json"
		line, err := e.AppendMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		value, _ := c.Encode(nil, &record.Record{Created: true, Line: line})
		if err := s.Apply([]wal.Entry{{LSN: at, Key: "m" + id, Kind: record.KindPut, Value: value}}); err != nil {
			t.Fatal(err)
		}
	}
	moment := func(from uint64, mortal bool, live int64, changes int) {
		t.Helper()
		if n, list, covered := s.Moment(from, mortal); n != live || len(list) != changes || covered != 8 {
			t.Errorf("from %d, mortal %v: %d memories, %d changes, covered %d; want %d, %d, 8", from, mortal, n, len(list), covered, live, changes)
		}
	}
	put(100, "a", index.Entry{})
	put(200, "b", index.Entry{SessionID: `"expires_at":`})
	moment(8, true, 2, 0)
	moment(8, false, 2, 2)
	put(300, "c", index.Entry{ExpiresAt: time.Unix(1, 0)})
	put(400, "d", index.Entry{})
	moment(8, true, 4, 4)
	moment(300, true, 4, 2)
	moment(301, true, 4, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLineAfterSwap verifies that a line of an old set is not returned after a swap.
func TestLineAfterSwap(t *testing.T) {
	dir := t.TempDir()
	var s State
	if _, err := s.Line(record.Memory, "a"); !errors.Is(err, errs.ErrClosed) {
		t.Errorf("before Begin: %v", err)
	}
	first := next(t, dir, index.Empty(8), 100, "a", "c")
	if err := s.Begin(first, false); err != nil {
		t.Fatal(err)
	}
	want := func(id string, version uint64) {
		t.Helper()
		for range 2 { // first looked up, then cached
			e, err := s.Line(record.Memory, id)
			if version == 0 && !errors.Is(err, errs.ErrNotFound) || version != 0 && (err != nil || e.Version != version || e.Filepath != "memories/"+id+".json") {
				t.Errorf("%s: version %d, %v; want %d", id, e.Version, err, version)
			}
			if _, err := s.Line(record.Assembly, id); !errors.Is(err, errs.ErrNotFound) {
				t.Errorf("an assembly %s: %v", id, err)
			}
		}
	}
	want("a", 99)
	want("b", 0)
	want("c", 99)
	set := s.Set()
	second := next(t, dir, set, 200, "a", "b")
	set.Release()
	want("b", 0)
	if err := s.Swap(second); err != nil {
		t.Fatal(err)
	}
	want("a", 199)
	want("b", 199)
	want("c", 99)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Line(record.Memory, "a"); !errors.Is(err, errs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestLineWhileSwapping verifies that look-ups never go back to an older set while sets are swapped.
func TestLineWhileSwapping(t *testing.T) {
	dir := t.TempDir()
	var s State
	ids := []string{"a", "b", "c"}
	if err := s.Begin(next(t, dir, index.Empty(8), 100, ids...), false); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			newest := map[string]uint64{}
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				id := ids[(i+g)%len(ids)]
				e, err := s.Line(record.Memory, id)
				if err != nil || e.Version < newest[id] {
					panic(fmt.Sprint(id, " ", e.Version, " after ", newest[id], " ", err))
				}
				newest[id] = e.Version
			}
		})
	}
	for lsn := uint64(200); lsn < 6000; lsn += 100 {
		set := s.Set()
		if err := s.Swap(next(t, dir, set, lsn, ids...)); err != nil {
			t.Fatal(err)
		}
		set.Release()
		if e, err := s.Line(record.Memory, "b"); err != nil || e.Version != lsn-1 {
			t.Fatalf("version %d after the swap to %d, %v", e.Version, lsn, err)
		}
	}
	close(done)
	wg.Wait()
	s.Close()
}

func TestFirstChanges(t *testing.T) {
	var s State
	if err := s.Begin(index.Empty(8), false); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 10 {
		s.Overlay().Put(record.Memory, fmt.Sprint(i), uint64(8*(i+1)), false)
	}
	for _, c := range [][4]uint64{{0, 1000, 100, 10}, {0, 1000, 4, 4}, {16, 40, 100, 3}, {16, 40, 3, 3}, {16, 40, 0, 0}} {
		if got := s.FirstChanges(c[0], c[1], int(c[2])); len(got) != int(c[3]) || len(got) > 0 && got[0].Pos != max(8, c[0]) {
			t.Errorf("from %d to %d at most %d: %v", c[0], c[1], c[2], got)
		}
	}
	for i := range 3 {
		s.Overlay().Put(record.Memory, fmt.Sprint("gone", i), uint64(88+8*i), true)
	}
	if n := s.Written(16, 1000); n != 9 {
		t.Errorf("%d changes from 16 on are not deletions", n)
	}
}
