package state

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// TestInterests verifies that an Interest matches documents that are put, pending and applied, and nothing else. A
// compressed document matches if it might.
func TestInterests(t *testing.T) {
	var s State
	if err := s.Begin(index.Empty(8), false); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lsn := uint64(8)
	put := func(m memstore.Memory) wal.Entry {
		doc, line, err := memstore.Prepare(&m, nil, time.Unix(1, 0), memstore.PrepareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var c record.Codec
		value, _ := c.Encode(nil, &record.Record{Created: true, Line: line, Doc: doc})
		lsn += 8
		return wal.Entry{LSN: lsn, Key: "m" + m.ID, Kind: record.KindPut, Value: value}
	}
	relation := func(from, to string) wal.Entry {
		return put(graph.Relation{From: from, To: to, Type: "r"}.Memory(time.Unix(1, 0), nil))
	}
	if a := relation("x", "y"); len(s.Also(&a)) > 0 {
		t.Error("before anybody asks")
	}
	long, huge := strings.Repeat("long", 200), strings.Repeat("huge", 2000)
	all := []string{"a|b", "c%", long, "d", huge, "e", "", "f", "g", "h", "i"}
	interests := map[string]*Interest{}
	for _, n := range all {
		interests[n] = s.Observe(kind.Memories, graph.Touching(n))
	}
	for _, c := range []struct {
		entry wal.Entry
		names []string
	}{
		{relation("a|b", "c%"), []string{"a|b", "c%"}},
		{relation(long, "d"), []string{long, "d"}}, // its id is a hash
		{relation(huge, "e"), all},
		{relation("", "f"), []string{"", "f"}},
		{put((&graph.Entity{Name: "g"}).Memory(time.Unix(1, 0), nil)), nil},
		{put(memstore.Memory{ID: "relation:h|r|i", Content: "somebody's"}), nil},
	} {
		before := map[string]uint64{}
		for _, n := range all {
			before[n] = interests[n].Newest()
		}
		keys := s.Also(&c.entry)
		if err := s.Apply([]wal.Entry{c.entry}); err != nil {
			t.Fatal(err)
		}
		for _, n := range all {
			i, want := interests[n], slices.Contains(c.names, n)
			at, err := s.Current(i.Key())
			if err != nil || at != i.Newest() || want != (at == c.entry.LSN) || !want && at != before[n] {
				t.Errorf("%.20q: %.20q is at %d, was %d, %v", c.entry.Key, n, at, before[n], err)
			}
			if slices.Contains(keys, i.Key()) != want {
				t.Errorf("%.20q: pending, %.20q is %v", c.entry.Key, n, !want)
			}
		}
	}
	before := interests["d"].Newest()
	if err := s.Begin(index.Empty(8), false); err != nil {
		t.Fatal(err)
	}
	if interests["d"].Newest() == before {
		t.Error("the same after a gap")
	}
	for _, i := range interests {
		s.Unobserve(i)
	}
	if a := relation("d", "d"); len(s.Also(&a)) > 0 {
		t.Error("when nobody asks any more")
	}
}
