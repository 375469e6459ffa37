package state

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// groupEntry returns the entry of an assembly; with nil members, the deletion of it.
func groupEntry(t testing.TB, lsn uint64, id string, created bool, members []string) wal.Entry {
	t.Helper()
	var c record.Codec
	r := record.Record{Created: created}
	if members != nil {
		a := assembly.Assembly{ID: id, MemoryIDs: members}
		line, err := a.Line([]byte("{}"), 0)
		if err != nil {
			t.Fatal(err)
		}
		r.Line, r.Doc = line, []byte("{}")
	}
	value, _ := c.Encode(nil, &r)
	e := wal.Entry{LSN: lsn, Key: "a" + id, Kind: record.KindPut, Delete: members == nil, Value: value}
	if e.Delete {
		e.Kind = record.KindDelete
	}
	return e
}

// groups is the model of what the state must return.
type groups struct {
	of      map[string][]string
	version map[string]uint64
	changed map[string]uint64 // since the last spill; 0 for a deleted one
}

func (g *groups) containing(memory string) (list []string, newest uint64) {
	for id, members := range g.of {
		if slices.Contains(members, memory) {
			list, newest = append(list, id), max(newest, g.version[id])
		}
	}
	slices.Sort(list)
	return list, newest
}

func (g *groups) check(t testing.TB, s *State, when string) {
	t.Helper()
	for i := range 6 {
		m := fmt.Sprint("m", i)
		list, newest := g.containing(m)
		got, version, err := s.Containing(m)
		if err != nil || !slices.Equal(got, list) || version != newest {
			t.Fatalf("%s: %s is in %q at %d, %v; want %q at %d", when, m, got, version, err, list, newest)
		}
		if current, err := s.Current(MembersKey(m)); err != nil || current != newest {
			t.Fatalf("%s: the key of %s is at %d, %v; want %d", when, m, current, err, newest)
		}
	}
	if len(g.of) > 0 && !s.Grouped() {
		t.Fatalf("%s: there is no assembly", when)
	}
}

// spill writes a set of the groups and loads it.
func (g *groups) spill(t testing.TB, dir string, s *State, lsn uint64) *index.Set {
	t.Helper()
	var ch index.Changes
	for id, version := range g.changed {
		c := index.Change{Section: index.Assemblies, ID: id, Version: version, Deleted: g.of[id] == nil, Members: g.of[id]}
		if c.Deleted {
			c.Version = lsn - 1
		} else {
			e := index.Entry{Filepath: "assemblies/" + id + ".json", Version: version, MemberCount: int64(len(c.Members)), Size: 1}
			line, err := e.AppendAssembly(nil)
			if err != nil {
				t.Fatal(err)
			}
			c.Finished = line
		}
		ch.List = append(ch.List, c)
	}
	set := s.Set()
	defer set.Release()
	to := index.Target{FS: vfs.OS(), Dir: dir, Temp: filepath.Join(dir, "temp"), Store: store, LSN: lsn}
	if _, err := index.WriteBase(set, to, ch); err != nil {
		t.Fatal(err)
	}
	next, err := index.Load(vfs.OS(), dir, index.Want{Store: store, Spilled: lsn}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.changed = map[string]uint64{}
	return next
}

// TestMembership compares the membership with a plain model, over random histories with spills between the changes. The
// answers are the same before and after each spill.
func TestMembership(t *testing.T) {
	seed := proofs.Seed(t, 0)
	if !proofs.Long() {
		seed = 1
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 20 {
		dir := t.TempDir()
		g := &groups{of: map[string][]string{}, version: map[string]uint64{}, changed: map[string]uint64{}}
		var s State
		if err := s.Begin(index.Empty(8), false); err != nil {
			t.Fatal(err)
		}
		if s.Grouped() || s.MembershipRebuilt() {
			t.Fatal("an empty state has assemblies")
		}
		for lsn := uint64(16); lsn < 16*60; lsn += 16 {
			id := fmt.Sprint("a", rng.IntN(5))
			members := []string{}
			for i := range 6 {
				if rng.IntN(3) == 0 {
					members = append(members, fmt.Sprint("m", i))
				}
			}
			if rng.IntN(4) == 0 {
				members = slices.Clone(g.of[id]) // the same members again, or a deletion of a missing assembly
			}
			if rng.IntN(5) == 0 {
				members = nil
			}
			_, was := g.of[id]
			if members == nil && !was {
				continue
			}
			hint := s.MembersHint()
			e := groupEntry(t, lsn, id, !was, members)
			lent := []byte(e.Key) // key and value belong to the log, and are valid only during the call
			e.Key = unsafe.String(&lent[0], len(lent))
			if err := s.Apply([]wal.Entry{e}); err != nil {
				t.Fatal(err)
			}
			clear(lent)
			clear(e.Value)
			if s.Unchanged(wal.Precondition{Key: MembersKey("m0"), Hint: hint}) {
				t.Fatal("unchanged after a change")
			}
			if members == nil {
				delete(g.of, id)
			} else {
				g.of[id], g.version[id] = members, lsn
			}
			g.changed[id] = lsn
			g.check(t, &s, "applied")
			if rng.IntN(6) == 0 {
				set := g.spill(t, dir, &s, lsn+8)
				g.check(t, &s, "spilled")
				if err := s.Swap(set); err != nil {
					t.Fatal(err)
				}
				g.check(t, &s, "swapped")
				if s.MembershipRebuilt() || s.Grouped() != (len(g.of) > 0) {
					t.Fatal("after a spill of everything")
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMembershipBehindSpill verifies that an assembly that changes again after the spilled position hides the set's
// version of it, and that the set does not have assemblies from after that position.
func TestMembershipBehindSpill(t *testing.T) {
	dir := t.TempDir()
	g := &groups{of: map[string][]string{}, version: map[string]uint64{}, changed: map[string]uint64{}}
	var s State
	if err := s.Begin(index.Empty(8), false); err != nil {
		t.Fatal(err)
	}
	apply := func(lsn uint64, id string, members ...string) {
		t.Helper()
		_, was := g.of[id]
		if err := s.Apply([]wal.Entry{groupEntry(t, lsn, id, !was, members)}); err != nil {
			t.Fatal(err)
		}
		g.of[id], g.version[id], g.changed[id] = members, lsn, lsn
	}
	apply(16, "a", "m0", "m1")
	apply(32, "b", "m1")
	set := g.spill(t, dir, &s, 40) // as of 40; before it is swapped in:
	apply(48, "a", "m2")
	apply(64, "c", "m1", "m0")
	if err := s.Swap(set); err != nil {
		t.Fatal(err)
	}
	g.check(t, &s, "swapped")
	if !s.MembershipRebuilt() {
		t.Error("what came behind the mark was forgotten")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMembershipWhileSwapping verifies that a reader never misses an assembly that contains the memory all the time,
// while sets are swapped and entries are applied.
func TestMembershipWhileSwapping(t *testing.T) {
	dir := t.TempDir()
	g := &groups{of: map[string][]string{}, version: map[string]uint64{}, changed: map[string]uint64{}}
	var s State
	if err := s.Begin(index.Empty(8), false); err != nil {
		t.Fatal(err)
	}
	lsn := uint64(16)
	apply := func(id string, members ...string) {
		t.Helper()
		_, was := g.of[id]
		if err := s.Apply([]wal.Entry{groupEntry(t, lsn, id, !was, members)}); err != nil {
			t.Fatal(err)
		}
		g.of[id], g.version[id], g.changed[id] = members, lsn, lsn
		lsn += 16
	}
	apply("always", "m0", "m1")
	apply("other", "m1")
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			newest := uint64(0)
			for {
				select {
				case <-done:
					return
				default:
				}
				list, version, err := s.Containing("m0")
				if err != nil || !slices.Contains(list, "always") || version < newest || len(list) > 2 || len(list) == 2 && list[0] == list[1] {
					panic(fmt.Sprint(list, version, newest, err))
				}
				newest = version
			}
		})
	}
	for i := range 60 {
		apply("always", "m0", fmt.Sprint("m", i%5+1))
		apply("other", "m0")
		if i%2 == 0 {
			if err := s.Swap(g.spill(t, dir, &s, lsn-8)); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(done)
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAlso verifies that an entry counts for all members that it names, and a deletion only for its own key.
func TestAlso(t *testing.T) {
	e := groupEntry(t, 16, "a", true, []string{"m0", "m1"})
	if got := new(State).Also(&e); !slices.Equal(got, []string{"r", "rm0", "rm1"}) {
		t.Errorf("%q", got)
	}
	e = groupEntry(t, 32, "a", false, nil)
	if got := new(State).Also(&e); len(got) > 0 {
		t.Errorf("%q", got)
	}
	memory := wal.Entry{Key: "ma", Kind: record.KindPut, Value: e.Value}
	if got := new(State).Also(&memory); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestMembershipGrowth verifies that superseded groups do not pile up.
func TestMembershipGrowth(t *testing.T) {
	var s State
	if err := s.Begin(index.Empty(8), false); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		members := []string{"m0", fmt.Sprint("m", i%7+1)}
		if err := s.Apply([]wal.Entry{groupEntry(t, uint64(16+16*i), "a", i == 0, members)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := cap(s.members.in["m0"]); n > 8 {
		t.Errorf("%d groups for one", n)
	}
}
