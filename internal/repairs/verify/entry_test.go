package verify

import (
	"testing"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/wal"
)

// TestDeletionBesidePut verifies that verify does not report a memory that is put and deleted while the log is read.
// The memory was deleted, is put again, and its deletion, which is read then, accounts for the entries before it. If it
// is deleted once more, index and overlay rightly do not have the memory. Found by TestStorm.
func TestDeletionBesidePut(t *testing.T) {
	var s state.State
	if err := s.Begin(index.Empty(0), false); err != nil {
		t.Fatal(err)
	}
	value, _ := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: []byte("{}")})
	first := wal.Entry{LSN: 100, Key: "ma", Kind: record.KindPut, Value: value}
	deletion := wal.Entry{LSN: 200, Key: "ma", Kind: record.KindDelete, Delete: true, Value: value}
	again := wal.Entry{LSN: 300, Key: "ma", Kind: record.KindPut, Value: value}
	if err := s.Apply([]wal.Entry{first, deletion}); err != nil {
		t.Fatal(err)
	}
	r := &row{v: &Run{Source: view.Source{State: &s}}, absent: map[string]wal.LSN{}}
	if err := r.known(&first, index.Entry{}); err != nil || len(r.absent) != 1 {
		t.Fatal(err, r.absent)
	}
	if err := s.Apply([]wal.Entry{again}); err != nil {
		t.Fatal(err)
	}
	if err := r.known(&deletion, index.Entry{}); err != nil || len(r.absent) != 0 {
		t.Error(err, r.absent)
	}
}
