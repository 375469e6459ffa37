package embedding_test

import (
	"context"
	"testing"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/embedding"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/memstore"
)

// TestWrite: a memory without an embedding gets the embedder's, a memory with one keeps it.
func TestWrite(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	calls := 0
	config := embedding.Config{Batch: 10, Model: "model", Timeout: embedding.DefaultEmbedTimeout,
		Call: func(_ context.Context, texts []string) (list [][]float32, err error) {
			for range texts {
				calls++
				list = append(list, []float32{1, 2, 3})
			}
			return list, nil
		}}
	c := commit.New(p.Engine, p.Vectors, p.Counts, p.Flusher, p.Host, commit.Config{Embeds: true})
	em := embedding.New(p.Engine, p.Vectors, c, p.Words.Before, nil, config)
	defer em.Close()
	ops := []commit.Op{{ID: "a", Memory: &memstore.Memory{ID: "a", Content: "one"}},
		{ID: "b", Memory: &memstore.Memory{ID: "b", Content: "two", Embedding: []float32{3, 2, 1}}}}
	if err := em.Write(t.Context(), ops, nil, 0); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]float32{"a": 1, "b": 3} {
		v, err := p.Engine.Get(t.Context(), p.Engine.Kinds().Memories, id)
		if err != nil {
			t.Fatal(err)
		}
		m, err := memstore.Decode(v.Doc, memstore.DecodeOptions{})
		if err != nil || len(m.Embedding) != 3 || m.Embedding[0] != want {
			t.Errorf("%s has %v, %v", id, m.Embedding, err)
		}
	}
	if calls != 1 {
		t.Errorf("%d texts were asked for", calls)
	}
}
