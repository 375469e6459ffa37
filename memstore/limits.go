package memstore

import "github.com/varve-db/varve/internal/jsondoc"

// Limits are the limits of one memory, for writing and for reading. A zero field means its default.
type Limits struct {
	MemoryBytes  int // size of the encoded document in bytes; default 16 MiB
	IDBytes      int // length of the id, and of metadata.session_id, in bytes; default 1,024
	Depth        int // nesting, where the document is level 1; default 100, at most 10,000
	EmbeddingDim int // numbers in embedding and in hyperbolic_embedding; default 65,536
}

// DefaultLimits returns the limits of a store whose config sets none.
func DefaultLimits() Limits {
	return Limits{MemoryBytes: 16 << 20, IDBytes: jsondoc.MaxID, Depth: jsondoc.MaxDepth, EmbeddingDim: 1 << 16}
}

// Resolved returns l with defaults in place of zero fields.
func (l Limits) Resolved() Limits {
	d := DefaultLimits()
	if l.MemoryBytes <= 0 {
		l.MemoryBytes = d.MemoryBytes
	}
	if l.IDBytes <= 0 {
		l.IDBytes = d.IDBytes
	}
	if l.Depth <= 0 {
		l.Depth = d.Depth
	}
	if l.EmbeddingDim <= 0 {
		l.EmbeddingDim = d.EmbeddingDim
	}
	l.Depth = min(l.Depth, jsondoc.DeepestDepth)
	return l
}

// wholeName is the name that errors use for the document as a whole.
const wholeName = "memory"

func (l Limits) checkSize(n int) error { return jsondoc.CheckSize(wholeName, n, l.MemoryBytes) }
