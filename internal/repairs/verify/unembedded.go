package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/vector"
)

// unembedded counts the memories that have content but no embedding, in a store whose embeddings are computed
// by a model. The embedder refused their texts, or was not available.
type unembedded struct {
	count int64
	ids   []string // ids of the first unembeddedNamed memories without an embedding
}

// unembeddedNamed is the maximum number of memories without an embedding that the finding names.
const unembeddedNamed = 16

func (u *unembedded) add(id string) {
	u.count++
	if i, ok := slices.BinarySearch(u.ids, id); !ok && i < unembeddedNamed {
		u.ids = slices.Insert(u.ids, i, strings.Clone(id))
		u.ids = u.ids[:min(len(u.ids), unembeddedNamed)]
	}
}

// embeds reports whether documents of kind k that have content should have an embedding. This is so only for memories,
// in a store whose embeddings are made by a named model, and not while the model is being changed.
func (s *vectors) embeds(k *kind.Kind) bool {
	return s != nil && k == kind.Memories && s.model.Name != "" && !s.changing()
}

// lacks returns a finding if a memory has content but no embedding. It does not add the memory to Run.unembedded: a
// file may be checked more than once before the result counts, so the caller adds it.
func lacks(id string, m *memstore.Memory) []repair.Finding {
	if len(m.Embedding) > 0 || strings.TrimSpace(m.Content) == "" {
		return nil
	}
	return []repair.Finding{{Kind: repair.EmbeddingsPending, ID: id}}
}

// reportUnembedded reports all memories without an embedding in one finding.
func (v *Run) reportUnembedded() error {
	u := v.unembedded
	if u.count == 0 {
		return nil
	}
	names := make([]string, len(u.ids))
	for i, id := range u.ids {
		names[i] = human.Quote(id)
	}
	more := ""
	if u.count > int64(len(names)) {
		more = ", …"
	}
	return v.report(repair.Finding{
		Kind: repair.EmbeddingsPending, Severity: repair.Info, Path: vector.BaseMapping, Offset: -1,
		Heals: repair.ByEmbedding, Next: repair.NextReindex + " --missing",
		Stake: "finding these memories by vector: the embedder has not embedded them yet, or refuses them (the " +
			"store tries a refused memory again as soon as its text changes)",
		Err: fmt.Errorf("memories with content but no embedding: %d (%s%s)", u.count, strings.Join(names, ", "), more),
	})
}
