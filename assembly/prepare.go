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

// Previous is what a write needs of the version that it replaces.
type Previous struct {
	CreatedAt time.Time
	// Document is its text. An Assembly that was not decoded takes over the members that it does
	// not know, and the text of those that it does not change. It also shows whether the composite
	// is a new one. A text that cannot be read is ignored: a damaged version must not prevent a
	// good one.
	Document []byte
	// VectorID is the number that the composite has in the vector file; 0: none,
	// or not known.
	VectorID int64
}

// PrepareOptions are settings of the store. The zero value has the defaults.
type PrepareOptions struct {
	Limits Limits
	Rand   io.Reader // for ids; nil: crypto/rand
	// VectorID is the number that a new composite brings along, from an import;
	// 0: it gets that of its frame.
	VectorID int64
	// Misfit reports whether the composite gets no vector: it has another dimension than the
	// store's. Then VectorIndexUpdatedAt is none.
	Misfit bool
	// Buffer is memory that the document may be put into, if it is large enough;
	// it is valid until the caller uses it again.
	Buffer []byte
}

// Prepare completes a and gives what the log is to carry: the document and the
// line (see the package's comment). old is nil for a new assembly.
//
//	ID                    a UUIDv7 if there is none
//	MemoryIDs             each once
//	CreatedAt             old's; else a's; else now
//	UpdatedAt             now
//	CreationTime          now if there is none
//	VectorIndexUpdatedAt  none without a composite; old's while the composite is
//	                      the same; else now, since document and vector are one commit
//
// now counts in whole microseconds; all times become UTC. Nothing is kept of a,
// and a is changed only when err is nil; its slices and maps are not written to.
// What may not be stored gives a *errs.FieldError that names member, value, limit.
func Prepare(a *Assembly, old *Previous, now time.Time, opts PrepareOptions) (doc, line []byte, err error) {
	lim := opts.Limits.Resolved()
	now = now.UTC().Truncate(time.Microsecond)
	n := *a
	if n.ID == "" {
		if n.ID, err = memstore.NewID(now, opts.Rand); err != nil {
			return nil, nil, fmt.Errorf("make an id: %w", err)
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

// parse gives the old document, nil when there is none or none that can be read.
func (p *Previous) parse() *jsondoc.Object {
	if p.Document == nil {
		return nil
	}
	// Not the limits of today: it was stored under those of its day. A copy,
	// because the Assembly may come to share it.
	o, err := parse(bytes.Clone(p.Document), Limits{Depth: jsondoc.DeepestDepth})
	if err != nil {
		return nil
	}
	return o
}

// stampVector sets VectorIndexUpdatedAt and gives the number of the vector; 0 is
// that of the frame.
func (a *Assembly) stampVector(before *jsondoc.Object, kept, brought int64, now time.Time) int64 {
	if len(a.CompositeEmbedding) == 0 {
		a.VectorIndexUpdatedAt = time.Time{}
		return 0
	}
	a.VectorIndexUpdatedAt = now
	if before == nil {
		return brought
	}
	raw, ok := before.Get(memberComposite)
	if !ok {
		return brought
	}
	if was, err := jsondoc.DecodeFloats(raw, math.MaxInt); err != nil || !slices.Equal(was, a.CompositeEmbedding) {
		return brought
	}
	if raw, ok := before.Get(memberIndexedAt); ok {
		if at, err := jsondoc.DecodeTime(raw, nil); err == nil && !at.IsZero() {
			a.VectorIndexUpdatedAt = at
		}
	}
	return kept
}
