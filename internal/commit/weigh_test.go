package commit

import (
	"strings"
	"testing"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// What makes an entry large counts, wherever it is: else such writes are not slowed when the files are behind.
func TestBytesOf(t *testing.T) {
	text := strings.Repeat("x", 100_000)
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = text[:97]
	}
	for name, op := range map[string]Op{
		"content":         {Memory: &memstore.Memory{Content: text}},
		"metadata":        {Memory: &memstore.Memory{Metadata: map[string]any{"a": map[string]any{"b": []any{text}}}}},
		"strings":         {Memory: &memstore.Memory{Metadata: map[string]any{"a": ids}}},
		"numbers":         {Memory: &memstore.Memory{Metadata: map[string]any{"a": make([]float64, 12_500)}}},
		"members":         {Assembly: &assembly.Assembly{MemoryIDs: ids}},
		"working memory":  {Work: &wal.Entry{Value: []byte(text)}},
		"many small ones": {Memory: &memstore.Memory{Metadata: map[string]any{"a": make([]any, 0), "b": many(10_000)}}},
	} {
		if n := bytesOf([]Op{op}); n < 80_000 || n > 150_000 {
			t.Errorf("%s: %d bytes, it has about 100,000", name, n)
		}
	}
	loop := map[string]any{}
	loop["a"], loop["b"] = loop, []any{loop, loop}
	if n := bytesIn(loop); n <= 0 || n > 1<<20 {
		t.Errorf("a value that is in itself: %d", n)
	}
}

func many(n int) (list []any) {
	for range n {
		list = append(list, map[string]any{"k": 1.5})
	}
	return list
}
