package varve

import (
	"context"

	"github.com/varve-db/varve/internal/embedding"
)

// Vectors are the embeddings of a store and the files with their vectors.
type Vectors struct{ st *Store }

// Vectors returns those of the store.
func (st *Store) Vectors() Vectors { return Vectors{st} }

// ReembedOptions says how Vectors.Reembed works. The zero value is right.
type ReembedOptions struct {
	Anew     bool // forget what an earlier run with this model has computed
	Progress func(ReembedReport)
}

// ReembedReport says what was done, or is done so far.
type ReembedReport struct {
	Total    int64 // memories with a content, about
	Resumed  int64 // vectors that an earlier run had computed
	Computed int64 // by this one
	Written  int64 // memories that got another embedding
	Changed  int64 // embeddings computed once more, for the content had changed

	// When it has ended: memories whose content the embedder does not take. They have
	// no embedding, and get one when it takes it, or another content.
	Refused  int64
	Refusals []Refusal // the first of them
}

// Refusal is a memory whose content the embedder did not take.
type Refusal struct {
	ID  string
	Err error
}

// Reembed gives every memory that has a content an embedding by the embedder, as
// after a change of the model, also to one of another dimension. Others may use the
// store meanwhile.
//
// The vectors are computed first, into a file beside the store's vectors. Until all
// of them are there the old ones serve, and processes whose EmbedModel is the new
// one store what is put without a vector: it is embedded with the rest. Then one
// entry of the log changes the model, for all processes at once: from there on every
// search is by the new vectors, all of them, wherever the documents are; processes
// whose EmbedModel is another one leave memories pending. Then the memories are
// rewritten, in batches, each on condition that its content is what the vector was
// made of; their updated_at stays. The store's dimension and model stand in
// config.json afterwards.
//
// A content that the embedder refuses, while it takes others, leaves its memory without
// an embedding, pending: the report names it, and the next Reembed, EmbedPending or
// another content has it asked again.
//
// When it ends early (ctx, an error, a crash) the next call with the same
// EmbedModel goes on where it was; one with another model goes on too, if the store
// had changed to the one before, and begins its own then. One call at a time:
// ErrLocked. A memory without a content keeps its embedding, and where that has
// another dimension it is not found by it any more.
//
// Where no memory has a content the model is changed all the same. If no document has a
// vector either, the embedder is asked for one, and its dimension becomes the store's:
// a store that was emptied keeps the one that it had until then.
func (vs Vectors) Reembed(ctx context.Context, o ReembedOptions) (*ReembedReport, error) {
	if err := vs.st.engine.Begun(); err != nil {
		return nil, err
	}
	defer vs.st.engine.Ended()
	if err := vs.st.engine.Writable(); err != nil {
		return nil, err
	}
	in := embedding.Options{Anew: o.Anew}
	if o.Progress != nil {
		in.Progress = func(r *embedding.Report) { o.Progress(*reembedReport(r)) }
	}
	r, err := vs.st.embedding.Reembed(ctx, in)
	return reembedReport(r), err
}

func reembedReport(r *embedding.Report) *ReembedReport {
	if r == nil {
		return nil
	}
	report := &ReembedReport{Total: r.Total, Resumed: r.Resumed, Computed: r.Computed, Written: r.Written, Changed: r.Changed, Refused: r.Refused}
	for _, x := range r.Refusals {
		report.Refusals = append(report.Refusals, Refusal(x))
	}
	return report
}

// CancelReembed calls off a re-embedding that was begun, by whichever process, and that
// has not changed the store's model yet: what it computed is removed, and the vectors
// that serve go on to. It says which model would have come, "" when none was told. One
// that has changed the model can only go on: ErrConflict. While it runs: ErrLocked.
func (vs Vectors) CancelReembed(ctx context.Context) (model string, err error) {
	if err := vs.st.engine.Begun(); err != nil {
		return "", err
	}
	defer vs.st.engine.Ended()
	if err := vs.st.engine.Writable(); err != nil {
		return "", err
	}
	return vs.st.embedding.Cancel(ctx)
}

// EmbedPending gives vectors to the memories that have a content and no
// embedding, and says how many got one. A store with an embedder does it in the
// background; this is for hosts without one (NoBackground). It ends at the first
// failure of the embedder.
func (vs Vectors) EmbedPending(ctx context.Context) (int64, error) {
	if err := vs.st.engine.Begun(); err != nil {
		return 0, err
	}
	defer vs.st.engine.Ended()
	if err := vs.st.engine.Writable(); err != nil {
		return 0, err
	}
	return vs.st.embedding.Pending(ctx)
}

// VectorDrift is by how much the vectors' files lag behind the index, as both
// stand: nothing is read but these, and nothing is changed. What is missing, stale
// or too much is made good by the next flush or search. Memories and assemblies
// count alike.
type VectorDrift struct {
	Missing int64 // an embedding without a vector
	Stale   int64 // another vector than the embedding's
	Ghosts  int64 // a vector without an embedding
	Misfits int64 // embeddings of another dimension, which have no vector
	Older   int64 // documents with an embedding by the model before: a re-embedding is rewriting them
	Without int64 // memories without an embedding, be it that it is pending or that there is no content
	Unknown int64 // lines from before there were vectors: only their documents know
	Pending int64 // what changed since the index was written; a search sees it all the same
}

// None says that nothing lags.
func (d *VectorDrift) None() bool { return d.Missing+d.Stale+d.Ghosts == 0 }

// Drift compares the numbers of the vectors with the lines of the index. It reads both,
// and no document.
func (vs Vectors) Drift(ctx context.Context) (VectorDrift, error) {
	d, err := vs.st.vectors.Compare(ctx)
	return VectorDrift(d), err
}
