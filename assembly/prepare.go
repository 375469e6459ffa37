package assembly

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/memstore"
)

// Previous describes the version that a write replaces.
type Previous struct {
	CreatedAt time.Time
	// Document is the text of the previous version. An Assembly that was not decoded gets the members from it that the
	// program does not know, and the text of members that are unchanged. Comparing it also shows whether the composite
	// has changed. A text that cannot be read is ignored: a damaged version must not prevent a valid one.
	Document []byte
	// VectorID is the number of the previous version's composite in the vector file; 0: none, or unknown.
	VectorID int64
}

// PrepareOptions are settings of the store. The zero value has the defaults.
type PrepareOptions struct {
	Limits Limits
	Rand   io.Reader // source of random bytes for ids; nil: crypto/rand
	// VectorID is the number of a new composite from an import; 0: the number is the position of the new version's
	// frame.
	VectorID int64
	// Misfit reports whether the composite gets no vector because its dimension is not that of the
	// store. Then VectorIndexUpdatedAt is not set.
	Misfit bool
	// Buffer is memory for the document, used if it is large enough; the document is then valid until
	// the caller uses Buffer again.
	Buffer []byte
}

// Prepare completes a and returns the document and the index line for the log (see the package comment).
// old is nil for a new assembly.
//
//	ID                    a UUIDv7 if it is empty
//	MemoryIDs             each once
//	CreatedAt             old's; else a's; else now
//	UpdatedAt             now
//	CreationTime          now if it is zero
//	VectorIndexUpdatedAt  none without a composite; old's while the composite is
//	                      the same; else now, since document and vector are one commit
//
// now is truncated to microseconds; all times become UTC. Nothing of a is retained, and a is changed
// only if err is nil; its slices and maps are not written to. A value that may not be stored is a
// *errs.FieldError that names member, value and limit.
func Prepare(a *Assembly, old *Previous, now time.Time, opts PrepareOptions) (doc, line []byte, err error) {
	lim := opts.Limits.Resolved()
	now = now.UTC().Truncate(time.Microsecond)
	n := *a
	if n.ID == "" {
		if n.ID, err = memstore.NewID(now, opts.Rand); err != nil {
			return nil, nil, fmt.Errorf("generating an id: %w", err)
		}
	} else if err := jsondoc.CheckID(memberID, n.ID, lim.IDBytes); err != nil {
		return nil, nil, err
	}
	if old == nil {
		old = &Previous{}
	}
	n.UpdatedAt = now
	if !old.CreatedAt.IsZero() {
		n.CreatedAt = old.CreatedAt
	} else if n.CreatedAt.IsZero() {
		n.CreatedAt = now
	}
	if n.CreationTime.IsZero() {
		n.CreationTime = now
	}
	n.MemoryIDs = united(n.MemoryIDs)
	before := old.parse()
	vectorID := n.stampVector(before, old.VectorID, opts.VectorID, now)
	if opts.Misfit {
		n.VectorIndexUpdatedAt = time.Time{}
	}
	for _, t := range n.times() {
		*t.value = t.value.Round(0).UTC()
	}
	base := n
	if base.source == nil {
		base.source = before
	}
	if doc, err = base.encode(lim, opts.Buffer); err != nil {
		return nil, nil, err
	}
	if line, err = n.Line(doc, vectorID); err != nil {
		return nil, nil, err
	}
	*a = n
	return doc, line, nil
}

// parse returns the document of the previous version. It returns nil if no previous version exists or its document
// cannot be read.
func (p *Previous) parse() *jsondoc.Object {
	if p.Document == nil {
		return nil
	}
	// The present limits do not apply: the text was stored under those of its time. It is copied,
	// because the Assembly may come to share it.
	o, err := parse(bytes.Clone(p.Document), Limits{Depth: jsondoc.DeepestDepth})
	if err != nil {
		return nil
	}
	return o
}

// stampVector sets VectorIndexUpdatedAt and returns the number of the composite in the vector file: oldID if the
// composite is the same as in prev, the previous document, and otherwise newID. prev may be nil: then the
// composite counts as new. The number 0 means the position of the new version in the log. If a has no composite,
// the result is also 0.
func (a *Assembly) stampVector(prev *jsondoc.Object, oldID, newID int64, now time.Time) int64 {
	if len(a.CompositeEmbedding) == 0 {
		a.VectorIndexUpdatedAt = time.Time{}
		return 0
	}
	a.VectorIndexUpdatedAt = now
	if prev == nil {
		return newID
	}
	raw, ok := prev.Get(memberComposite)
	if !ok {
		return newID
	}
	if was, err := jsondoc.DecodeFloats(raw, math.MaxInt); err != nil || !slices.Equal(was, a.CompositeEmbedding) {
		return newID
	}
	if raw, ok := prev.Get(memberIndexedAt); ok {
		if at, err := jsondoc.DecodeTime(raw, nil); err == nil && !at.IsZero() {
			a.VectorIndexUpdatedAt = at
		}
	}
	return oldID
}
