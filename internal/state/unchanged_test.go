package state

import (
	"testing"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

func TestUnchanged(t *testing.T) {
	var s State
	if err := s.Begin(index.Empty(0), false); err != nil {
		t.Fatal(err)
	}
	codec := new(record.Codec)
	line, err := (&index.Entry{Filepath: "memories/a.json"}).AppendMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	value, _ := codec.Encode(nil, &record.Record{Created: true, Line: line})
	hint := s.Hint()
	ask := func(id string, at wal.LSN) bool {
		return s.Unchanged(wal.Precondition{Key: "m" + id, LSN: at, Hint: hint})
	}
	if !ask("a", 0) {
		t.Error("absent, and nothing has changed")
	}
	if err := s.Apply([]wal.Entry{
		{LSN: 100, Key: "ma", Kind: record.KindPut, Value: value},
		{LSN: 200, Key: "mb", Kind: record.KindDelete, Delete: true, Value: value},
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   string
		at   wal.LSN
		want bool
	}{{"a", 0, false}, {"a", 100, true}, {"a", 99, false}, {"b", 0, true}, {"b", 200, false}, {"c", 0, true}} {
		if got := ask(c.id, c.at); got != c.want {
			t.Errorf("%s at %d: unchanged is %v", c.id, c.at, got)
		}
	}
	// Another set may contain changes that the overlay does not have.
	if err := s.Begin(index.Empty(0), false); err != nil {
		t.Fatal(err)
	}
	if ask("c", 0) {
		t.Error("unchanged, though the set is another one")
	}
}
