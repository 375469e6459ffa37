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
	if keys := s.Also(&a); len(keys) > 0 {
		t.Errorf("before anybody asks: %q", keys)
	}
	if !s.WatchPuts() || s.WatchPuts() {
		t.Error("it does not say whether it had begun")
	}
	if keys := s.Also(&a); !slices.Equal(keys, []string{PutsKey(""), PutsKey("a")}) {
		t.Errorf("%q", keys)
	}
	version := func(session string) uint64 {
		v, err := s.Current(PutsKey(session))
		if err != nil || v != s.NewestPut(session) {
			t.Fatalf("%q: %d, %d, %v", session, v, s.NewestPut(session), err)
		}
		return v
	}
	apply := func(list ...wal.Entry) {
		if err := s.Apply(list); err != nil {
			t.Fatal(err)
		}
	}
	apply(a)
	if version("a") != 16 || version("") != 16 || version("b") == 400 {
		t.Error(version("a"), version(""), version("b"))
	}
	apply(b, wal.Entry{LSN: 800, Key: "mx", Kind: record.KindDelete, Delete: true, Value: deletion(t)})
	if version("a") != 16 || version("") != 400 || version("b") != 400 {
		t.Error(version("a"), version(""), version("b"))
	}
	apply(a) // once more
	if version("") != 400 {
		t.Error("it goes back")
	}
	// What nobody has seen is another version.
	if err := s.Begin(index.Empty(8), false); err != nil {
		t.Fatal(err)
	}
	if v := version("a"); v == 16 {
		t.Error("the same after a gap")
	}
}

func deletion(t *testing.T) []byte {
	t.Helper()
	var c record.Codec
	value, _ := c.Encode(nil, &record.Record{Previous: 16})
	return value
}
