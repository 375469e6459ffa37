package varve

import "context"

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

// VectorDrift compares the numbers of the vectors with the lines of the index. It
// reads both; CheckVectors compares the vectors themselves, with the documents.
func (st *Store) VectorDrift(ctx context.Context) (VectorDrift, error) {
	d, err := st.vectors.Compare(ctx)
	return VectorDrift(d), err
}
