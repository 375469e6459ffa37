package varve

import (
	"context"

	"github.com/varve-db/varve/internal/embedding"
)

// Vectors has the methods for the embeddings of a store and for the files with their vectors.
type Vectors struct{ st *Store }

// Vectors returns the methods for the embeddings of the store.
func (st *Store) Vectors() Vectors { return Vectors{st} }

// ReembedOptions are the settings of Vectors.Reembed. The zero value has the defaults.
type ReembedOptions struct {
	Restart  bool // discard what an earlier run with this model has computed
	Progress func(ReembedReport)
}

// ReembedReport reports what a re-embedding did, or has done so far.
type ReembedReport struct {
	Total    int64 // approximate number of memories with a content
	Resumed  int64 // vectors that an earlier run had computed
	Computed int64 // vectors that this run computed
	Written  int64 // memories that got another embedding
	Changed  int64 // embeddings computed again because the content had changed

	// Refused is the number of memories whose content the embedder refused. It is set when the re-embedding has ended.
	// These memories have no embedding, and get one when the embedder accepts the content, or the content changes.
	Refused  int64
	Refusals []Refusal // the first of the refused memories
}

// Refusal is a memory whose content the embedder refused.
type Refusal struct {
	ID  string
	Err error
}

// Reembed computes a new embedding for every memory that has a content. This is needed after a change of the embedding
// model, and possible also if the new model has another dimension. Other processes may use the store meanwhile.
//
// Reembed first computes the vectors, into a file beside the store's vectors. Until all are computed, searches use the
// old vectors. Processes whose EmbedModel is the new model store new memories without a vector; Reembed computes these
// vectors too.
//
// Then one entry of the log changes the model, for all processes at once. From then on every search uses only the new
// vectors, even if the documents are not rewritten yet, and processes with another EmbedModel store memories without an
// embedding (pending). Then Reembed rewrites the memories in batches. A memory is rewritten only if its content is
// still the one from which the vector was computed; its updated_at does not change. At the end, config.json has the
// dimension and the model.
//
// If the embedder refuses the content of a memory but accepts others, this memory has no embedding and is pending. The
// report names the memory. The next Reembed or EmbedPending, or a change of the content, tries again.
//
// If Reembed ends early (ctx, an error, a crash), the next call with the same EmbedModel continues. A call with a
// different model first completes the earlier re-embedding if it had already changed the store's model, and then begins
// its own. Only one call may run at a time; otherwise the error is ErrLocked. A memory without a content keeps its
// embedding. If this embedding has another dimension than the new model, searches by vector no longer find the memory.
//
// If no memory has a content, the model is still changed. If no document has a vector either, Reembed calls the
// embedder for one vector, and the store gets the dimension of this vector: an empty store would otherwise keep its
// former dimension.
func (vs Vectors) Reembed(ctx context.Context, o ReembedOptions) (*ReembedReport, error) {
	if err := vs.st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer vs.st.inner.Engine.EndUse()
	if err := vs.st.inner.Engine.Writable(); err != nil {
		return nil, err
	}
	in := embedding.Options{Restart: o.Restart}
	if o.Progress != nil {
		in.Progress = func(r *embedding.Report) { o.Progress(*reembedReport(r)) }
	}
	r, err := vs.st.inner.Embedding.Reembed(ctx, in)
	return reembedReport(r), err
}

func reembedReport(r *embedding.Report) *ReembedReport {
	if r == nil {
		return nil
	}
	report := &ReembedReport{Total: r.Total, Resumed: r.Resumed, Computed: r.Computed, Written: r.Written,
		Changed: r.Changed, Refused: r.Refused}
	for _, x := range r.Refusals {
		report.Refusals = append(report.Refusals, Refusal(x))
	}
	return report
}

// CancelReembed cancels a re-embedding that any process has begun, removes the vectors that were computed for it, and
// keeps the current vectors in use. It returns the model of the canceled re-embedding, or "" if the model is unknown.
// If the re-embedding has already changed the store's model, it can only be completed, and the error is ErrConflict. If
// the re-embedding is running, the error is ErrLocked.
func (vs Vectors) CancelReembed(ctx context.Context) (model string, err error) {
	if err := vs.st.inner.Engine.BeginUse(); err != nil {
		return "", err
	}
	defer vs.st.inner.Engine.EndUse()
	if err := vs.st.inner.Engine.Writable(); err != nil {
		return "", err
	}
	return vs.st.inner.Embedding.Cancel(ctx)
}

// EmbedPending computes embeddings for the memories that have a content, and that have no embedding or an embedding of
// zeros. It returns the number of memories that got an embedding. Then it computes the missing embeddings of sections
// of notes. A store with an embedder does this in the background; EmbedPending is for programs that open the store
// without background work (NoBackground). It ends at the first failure of the embedder, with one exception: if the
// embedder refuses a section but accepts another text, EmbedPending skips the section, and at the end returns an error
// with the number of skipped sections.
func (vs Vectors) EmbedPending(ctx context.Context) (int64, error) {
	if err := vs.st.inner.Engine.BeginUse(); err != nil {
		return 0, err
	}
	defer vs.st.inner.Engine.EndUse()
	if err := vs.st.inner.Engine.Writable(); err != nil {
		return 0, err
	}
	n, err := vs.st.inner.Embedding.Pending(ctx)
	if err != nil {
		return n, err
	}
	_, err = vs.st.inner.Embedding.PendingSections(ctx)
	return n, err
}

// Embed calls Options.Embed to get the vectors of query texts, each formatted with VectorConfig.QueryTemplate. It
// waits at most Options.EmbedTimeout, and fails at once while the embedder is down (EmbedderError).
func (vs Vectors) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if err := vs.st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer vs.st.inner.Engine.EndUse()
	return vs.st.inner.Embedding.Query(ctx, texts)
}

// VectorDrift reports how far the vector files differ from the index. The next flush or search corrects missing, stale
// and surplus vectors. Memories and assemblies are counted together.
type VectorDrift struct {
	Missing int64 // embeddings without a vector
	Stale   int64 // vectors that differ from the embedding
	Ghosts  int64 // vectors without an embedding
	Misfits int64 // embeddings of another dimension, which have no vector
	Older   int64 // documents with an embedding by the previous model: a re-embedding is rewriting them
	Without int64 // memories without an embedding: it is pending, or there is no content
	Unknown int64 // lines of the index from before vectors were introduced: only the documents show whether they have one
	Pending int64 // changes since the index was written; searches see them
}

// None reports whether Missing, Stale and Ghosts are all 0.
func (d *VectorDrift) None() bool { return d.Missing+d.Stale+d.Ghosts == 0 }

// Drift compares the vector files with the index: for each document, the number of its vector in the vector files with
// the number in its index line. It reads no document and changes nothing.
func (vs Vectors) Drift(ctx context.Context) (VectorDrift, error) {
	d, err := vs.st.inner.Vectors.Compare(ctx)
	return VectorDrift(d), err
}
