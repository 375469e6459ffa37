package commit

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// TestBytesOf verifies that everything that makes an entry large is counted: otherwise such writes are not slowed when
// the files are behind.
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
		"map of texts":    {Memory: &memstore.Memory{Metadata: map[string]any{"a": map[string]string{"b": text}}}},
		"list of maps":    {Memory: &memstore.Memory{Metadata: map[string]any{"a": []map[string]any{{"b": text}}}}},
		"raw JSON":        {Memory: &memstore.Memory{Metadata: map[string]any{"a": json.RawMessage(text)}}},
		"bytes":           {Memory: &memstore.Memory{Metadata: map[string]any{"a": []byte(text)}}},
		"a long number":   {Memory: &memstore.Memory{Metadata: map[string]any{"a": json.Number(text)}}},
		"nothing":         {Memory: &memstore.Memory{Metadata: map[string]any{"a": make([]any, 20_000)}}},
		"tags":            {Assembly: &assembly.Assembly{Keywords: ids[:300], Tags: ids[:300], Topics: ids[:300], MergedFrom: ids[:100]}},
		"profile":         {Assembly: &assembly.Assembly{EmotionProfile: map[string]any{"a": text}}},
		"many small ones": {Memory: &memstore.Memory{Metadata: map[string]any{"a": make([]any, 0), "b": many(7_000)}}},
	} {
		if n := bytesOf([]Op{op}); n < 80_000 || n > 150_000 {
			t.Errorf("%s: %d bytes, it has about 100,000", name, n)
		}
	}
	if n := bytesIn(map[string]any{"a": many(200_000)}); n < 2_000_000 || n > 3_600_000 {
		t.Errorf("200,000 maps: %d bytes", n)
	}
	loop := map[string]any{}
	loop["a"], loop["b"] = loop, []any{loop, loop}
	if n := bytesIn(loop); n <= 0 || n > 2<<30 {
		t.Errorf("a value that is in itself: %d", n)
	}
}

func many(n int) (list []any) {
	for range n {
		list = append(list, map[string]any{"k": 1.5})
	}
	return list
}
