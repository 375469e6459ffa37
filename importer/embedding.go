package importer

import (
	"fmt"
	"math"
	"strconv"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
)

// fromVectors looks for the vector of an item in the vector files. If the item has an embedding, fromVectors compares
// the vector with the embedding. Otherwise the vector becomes the embedding of the item. A vector whose dimension does
// not fit is only counted. A returned Problem is to be yielded after the item; nil means that there is no problem.
func (r *run) fromVectors(item *Item) (*Problem, error) {
	v := &r.vectors
	if !v.any() {
		return nil, nil
	}
	have, name, err := embeddingOf(item)
	if err != nil {
		return nil, nil // the store will refuse the document
	}
	if len(have) > 0 {
		v.dims[len(have)]++
	}
	at, ok := v.placeOf(item)
	if !ok {
		return nil, nil
	}
	f := at.file
	f.claimed[at.row] = true
	where := fmt.Sprintf("row %d of %s, vector %d", at.row, f.Path, f.index.ID(at.row))
	problem := func(kind Kind, reason string) *Problem {
		return &Problem{Path: item.Path, ID: item.ID, Kind: kind, Taken: true, Reason: where + reason}
	}
	switch {
	case len(have) > 0 && len(have) != f.Dimension:
		f.Unfit++
		return nil, nil // counted, and reported once for all; see unclaimed
	case len(have) == 0 && len(v.dims) > 0 && v.dims[f.Dimension] == 0:
		f.Unfit++
		f.bare++
		return nil, nil
	}
	row, err := f.index.Vector(nil, at.row)
	if err != nil {
		return problem(KindVectors, ": "+err.Error()), nil
	}
	switch bad := vector.CheckFinite("vector", row); {
	case len(have) > 0 && bad == nil && alike(row, have):
		f.Same++
		return nil, nil
	case len(have) > 0:
		f.Stale++
		return problem(KindStale, " differs from the embedding of the document, which takes precedence"), nil
	case bad != nil:
		f.Useless++
		return problem(KindStale, " cannot be the embedding of the document: "+bad.Error()), nil
	case vector.Norm(row) == 0:
		f.Useless++
		return problem(KindStale, " is all zero: the document gets no embedding"), nil
	}
	f.Taken++
	item.JSON, item.Vector = withValue(item.JSON, name, listOf(row)), true
	reason := " becomes the embedding of the document, which had none"
	if item.Assembly {
		reason += "; if the members of the assembly have embeddings, the store computes the composite embedding " +
			"from them"
	}
	return problem(KindVector, reason), nil
}

// embeddingOf returns the embedding of an item's document, and the name of the JSON member for the embedding.
func embeddingOf(item *Item) (v []float32, name string, err error) {
	if item.Assembly {
		a, err := assembly.Decode(item.JSON, assembly.DecodeOptions{Limits: noLimits()})
		if err != nil {
			return nil, "", err
		}
		return a.CompositeEmbedding, "composite_embedding", nil
	}
	const huge = 1 << 30
	m, err := memstore.Decode(item.JSON,
		memstore.DecodeOptions{Limits: memstore.Limits{MemoryBytes: huge, IDBytes: huge, Depth: huge, EmbeddingDim: huge}})
	if err != nil {
		return nil, "", err
	}
	return m.Embedding, "embedding", nil
}

// nearEnough is the maximum distance between an embedding and a vector of a vector file that count as equal, relative
// to the length of the embedding. The distance is not 0, because the systems that wrote the files scaled the vectors
// to length 1 in float32.
const nearEnough = 1e-4

// alike reports whether row, a vector of a vector file, equals the embedding or the embedding scaled to length 1; see
// nearEnough.
func alike(row, embedding []float32) bool {
	norm := vector.Norm(embedding)
	var plain, unit float64
	for i, x := range embedding {
		d := float64(row[i]) - float64(x)
		plain += d * d
		if norm > 0 {
			d = float64(row[i]) - float64(x)/norm
		}
		unit += d * d
	}
	return math.Sqrt(plain) <= nearEnough*norm || norm > 0 && math.Sqrt(unit) <= nearEnough
}

// listOf returns a vector as JSON, with the fewest digits that give the same float32.
func listOf(v []float32) []byte {
	out := []byte{'['}
	for i, x := range v {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendFloat(out, float64(x), 'g', -1, 32)
	}
	return append(out, ']')
}
