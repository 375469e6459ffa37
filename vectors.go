package varve

import (
	"context"

	"github.com/varve-db/varve/internal/embedding"
)

// Vectors are the embeddings of a store and the files with their vectors.
type Vectors struct{ st *Store }

// Vectors returns the embeddings of the store.
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

// Reembed computes a new embedding for every memory that has a content, as needed after a change of the model, also to
// one of another dimension. Other processes may use the store meanwhile.
//
// The vectors are computed first, into a file beside the store's vectors. Until all are computed, searches use the old
// vectors, and processes whose EmbedModel is the new model store new memories without a vector: these are embedded with
// the rest.
//
// Then one entry of the log changes the model, for all processes at once. From there on every search uses only the new
// vectors, whether or not the documents are rewritten already; processes with another EmbedModel leave memories
// pending. Then the memories are rewritten, in batches, each on condition that its content is the one from which the
// vector was made; their updated_at does not change. The store's dimension and model are in config.json afterwards.
//
// A content that the embedder refuses, while it accepts others, leaves its memory without an embedding, pending: the
// report names it, and the next Reembed or EmbedPending, or a change of the content, tries again.
//
// If Reembed ends early (ctx, an error, a crash), the next call with the same EmbedModel continues. A call with another
// model also continues, if the store had already changed to the previous one, and then begins its own. Only one call
// may run at a time: ErrLocked. A memory without a content keeps its embedding; if that has another dimension, searches
// no longer find the memory by it.
//
// If no memory has a content, the model is still changed. If no document has a vector either, Reembed calls the
// embedder for one vector, and its dimension becomes the store's: an empty store would otherwise keep its former
// dimension.
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

// CancelReembed cancels a re-embedding that any process began and that has not changed the store's
// model yet: what it computed is removed, and the current vectors remain in use. It returns the
// model of the canceled re-embedding, "" if unknown. One that has changed the model can only be
// completed: ErrConflict. While it runs: ErrLocked.
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

// EmbedPending computes embeddings for the memories that have a content and no embedding, or one of zeros, and returns
// how many got one. After them it computes those of the sections of notes that have none. A store with an embedder does
// this in the background; this method is for hosts without background work (NoBackground). It ends at the first failure
// of the embedder, with one exception: if the embedder refuses a section but accepts another text, EmbedPending skips
// the section, and returns at the end an error with the number of sections skipped.
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

// VectorDrift reports how far the files of the vectors lag behind the index: Drift reads only these two and changes
// nothing. The next flush or search corrects missing, stale and surplus vectors. Memories and assemblies are counted
// together.
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

// None reports whether no vector is missing, stale or without an embedding.
func (d *VectorDrift) None() bool { return d.Missing+d.Stale+d.Ghosts == 0 }

// Drift compares the numbers of the vectors with the lines of the index. It reads both, and no document.
func (vs Vectors) Drift(ctx context.Context) (VectorDrift, error) {
	d, err := vs.st.inner.Vectors.Compare(ctx)
	return VectorDrift(d), err
}
