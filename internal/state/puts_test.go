package state

import (
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

func putEntry(t *testing.T, lsn uint64, id, session string) wal.Entry {
	t.Helper()
	m := memstore.Memory{ID: id, Metadata: map[string]any{"session_id": session}}
	doc, line, err := memstore.Prepare(&m, nil, time.Unix(1, 0), memstore.PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var c record.Codec
	value, _ := c.Encode(nil, &record.Record{Created: true, Line: line, Doc: doc})
	return wal.Entry{LSN: lsn, Key: "m" + id, Kind: record.KindPut, Value: value}
}

func TestPuts(t *testing.T) {
	var s State
	if err := s.Begin(index.Empty(8), false); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, b := putEntry(t, 16, "x", "a"), putEntry(t, 400, "y", "b")
	again := putEntry(t, 800, "x", "b") // x moves to session b
	var c record.Codec
	v, err := record.Parse(again.Value)
	if err != nil {
		t.Fatal(err)
	}
	doc, _ := v.Plain()
	again.Value, _ = c.Encode(nil, &record.Record{Previous: 16, Line: v.Line, Doc: doc})
	if list := s.Counts(&a); len(list) > 0 {
		t.Errorf("before anybody asks: %v", list)
	}
	if !s.WatchPuts() || s.WatchPuts() {
		t.Error("it does not say whether it had begun")
	}
	size := uint64(len(doc))
	for e, want := range map[*wal.Entry][]wal.Amount{
		&a:     {{Key: PutsKey(""), N: 1}, {Key: PutBytesKey(""), N: size}, {Key: PutsKey("a"), N: 1}, {Key: PutBytesKey("a"), N: size}},
		&again: {{Key: PutBytesKey(""), N: size}, {Key: PutsKey("b"), N: 1}, {Key: PutBytesKey("b"), N: size}},
	} {
		if list := s.Counts(e); !slices.Equal(list, want) {
			t.Errorf("%v, not %v", list, want)
		}
	}
	first := map[string]uint64{}
	total := func(session string) [2]uint64 {
		var of [2]uint64
		for i, key := range []string{PutsKey(session), PutBytesKey(session)} {
			v, err := s.Current(key)
			if err != nil || v != []uint64{s.PutCount(session), s.PutSize(session)}[i] {
				t.Fatalf("%q: %d, %d, %d, %v", session, v, s.PutCount(session), s.PutSize(session), err)
			}
			if _, ok := first[key]; !ok {
				first[key] = v
			}
			of[i] = v - first[key]
		}
		return of
	}
	totals := func() [3][2]uint64 { return [3][2]uint64{total(""), total("a"), total("b")} }
	totals()
	apply := func(list ...wal.Entry) {
		if err := s.Apply(list); err != nil {
			t.Fatal(err)
		}
	}
	apply(a)
	if got := totals(); got != [3][2]uint64{{1, size}, {1, size}, {}} {
		t.Error(got)
	}
	apply(b, wal.Entry{LSN: 600, Key: "my", Kind: record.KindDelete, Delete: true, Value: deletion(t)})
	if got := totals(); got != [3][2]uint64{{2, 2 * size}, {1, size}, {1, size}} {
		t.Error(got)
	}
	apply(again)
	if got := totals(); got != [3][2]uint64{{2, 3 * size}, {1, size}, {2, 2 * size}} {
		t.Error(got)
	}
	// While puts were not counted, anything may have been put, however often that happens.
	before := totals()
	for range 20 {
		if err := s.Begin(index.Empty(8), false); err != nil {
			t.Fatal(err)
		}
		for i, now := range totals() {
			for k := range now {
				if now[k]-before[i][k] <= MostPuts {
					t.Fatalf("%d more after a gap", now[k]-before[i][k])
				}
			}
		}
	}
}

func deletion(t *testing.T) []byte {
	t.Helper()
	var c record.Codec
	value, _ := c.Encode(nil, &record.Record{Previous: 16})
	return value
}
