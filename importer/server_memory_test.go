package importer

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/memstore"
)

// A real file without types and with members of its own: every line becomes a memory, and exporting it
// returns the same line, except for its type.
func TestServerMemoryReal(t *testing.T) {
	t.Parallel()
	path := proofs.SharedData(t, "memory-graph.jsonl")
	if f, err := Detect(path); f != ServerMemory || err != nil {
		t.Fatal(f, err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]any{} // by what it is about
	about := func(m map[string]any) string {
		if m["name"] != nil {
			return m["name"].(string)
		}
		return m["from"].(string) + "\x00" + m["relationType"].(string) + "\x00" + m["to"].(string)
	}
	lines := 0
	for line := range strings.Lines(string(raw)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		lines++
		if want[about(m)] == nil {
			want[about(m)] = m
		}
	}
	src, err := Open(path, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	items, problems := 0, 0
	for e, err := range src.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Problem != nil {
			problems++
			if e.Problem.Kind != KindDuplicate {
				t.Error(e.Problem)
			}
			continue
		}
		items++
		m, err := memstore.Decode(e.Item.JSON, memstore.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, ok, err := graph.AppendLine(nil, m)
		if !ok || err != nil {
			t.Fatalf("%s: %v %v", e.Item.JSON, ok, err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		was := maps.Clone(want[about(got)])
		if was["type"] == nil {
			delete(got, "type")
		}
		if !reflect.DeepEqual(got, was) {
			t.Errorf("%v\nbecame %v", was, got)
		}
	}
	if lines != 159 || items+problems != lines || items != len(want) {
		t.Errorf("%d lines, %d different, gave %d memories and %d problems", lines, len(want), items, problems)
	}
}
