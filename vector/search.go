package vector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index/table"
)

// ErrDimension means that a vector has another number of dimensions than the store's vectors.
var ErrDimension = errors.New("wrong dimension")

// Query describes a search.
type Query struct {
	Kind   Kind
	Vector []float32
	Limit  int // maximum number of hits; at least 1
	// MinScore is the minimum score of a hit; 0 means no minimum.
	MinScore float64
	// Accept reports whether a candidate may be a hit; nil accepts all. Search calls it for the candidates, best first,
	// until Limit candidates are accepted. Search holds no lock during the call, and calls Accept at most once per key.
	Accept func(key string) (bool, error)
	// Keys has the keys of the vectors to compare, for example the result of a filter; nil compares all vectors.
	Keys []string
	// Workers is the number of goroutines that search; 0 and 1 start none besides the caller.
	Workers int
}

// Hit is a result of a search.
type Hit struct {
	Key   string
	ID    int64   // FAISS id of the vector
	Score float64 // similarity: the cosine, or 1/(1+d²)
}

// found is a search candidate with its document key.
type found struct {
	Hit
	val float32
	enc string // the key in its encoded form, by which rows are ordered
}

// Search compares the vectors of a kind with the query's vector. It returns the nearest ones, best first; hits with
// equal scores are in the order of their keys. If the query's vector has the wrong number of dimensions, the error
// matches ErrDimension. If the query's vector contains NaN or infinity, the error is a *errs.FieldError. The same error
// is returned if the metric is IP and the query's vector has only zeros, because it has no direction to compare.
func (v *View) Search(ctx context.Context, q Query) ([]Hit, error) {
	if q.Limit < 1 {
		return nil, fmt.Errorf("%w: Query.Limit is %d, but must be at least 1", errs.ErrInvalid, q.Limit)
	}
	dim := v.Dim()
	if dim == 0 {
		return nil, nil // there are no vectors
	}
	if err := v.checkQuery(q.Vector, dim); err != nil {
		return nil, err
	}
	s := search{v: v, q: &q, vector: v.metric.query(q.Vector), kernel: kernelOf(v.metric)}
	if q.Keys != nil {
		list, err := s.keyCandidates(ctx, q.Keys)
		if err != nil {
			return nil, err
		}
		hits, _, err := s.accept(ctx, list)
		return hits, err
	}
	// It is unknown how many candidates Accept will refuse: if too few are left, fetch more.
	k := q.Limit
	if q.Accept != nil {
		k = max(4*q.Limit, 64)
	}
	for {
		list, more, err := s.best(ctx, k)
		if err != nil {
			return nil, err
		}
		hits, enough, err := s.accept(ctx, list)
		if err != nil || enough || !more {
			return hits, err
		}
		k *= 8
	}
}

func (v *View) checkQuery(vector []float32, dim int) error {
	if len(vector) != dim {
		return &errs.FieldError{Field: "vector", Value: fmt.Sprintf("of %d dimensions", len(vector)),
			Limit: fmt.Sprintf("%d, as in the store", dim), Err: ErrDimension}
	}
	if err := CheckFinite("vector", vector); err != nil {
		return err
	}
	if v.metric == IP && Norm(vector) == 0 {
		return &errs.FieldError{Field: "vector", Err: errors.New("all numbers of the vector are zero, so it has no " +
			"direction to compare")}
	}
	return nil
}

// search is the state of one call of Search.
type search struct {
	v      *View
	q      *Query
	vector []float32
	kernel kernel
	judged map[string]bool // results of Accept, so that it is called once for each key
}

// value converts the result of a kernel to a number that is greater for a nearer row.
func (s *search) value(x float32) float32 {
	if s.v.metric == L2 {
		return -x
	}
	return x
}

func (s *search) found(key, enc string, id int64, val float32) found {
	x := val
	if s.v.metric == L2 {
		x = -val
	}
	return found{Hit: Hit{Key: key, ID: id, Score: s.v.metric.score(x)}, val: val, enc: enc}
}

// accept calls Query.Accept for the candidates in list, which are sorted best first, and returns the accepted ones, at
// most Limit. enough reports that no further candidates are needed: Limit is reached, or all further ones are below
// MinScore.
func (s *search) accept(ctx context.Context, list []found) (hits []Hit, enough bool, err error) {
	for i := range list {
		h := &list[i].Hit
		if s.q.MinScore != 0 && h.Score < s.q.MinScore {
			return hits, true, nil
		}
		ok := true
		if s.q.Accept != nil {
			var known bool
			if ok, known = s.judged[h.Key]; !known {
				if err := ctx.Err(); err != nil {
					return nil, false, err
				}
				if ok, err = s.q.Accept(h.Key); err != nil {
					return nil, false, err
				}
				if s.judged == nil {
					s.judged = map[string]bool{}
				}
				s.judged[h.Key] = ok
			}
		}
		if !ok {
			continue
		}
		if hits = append(hits, *h); len(hits) == s.q.Limit {
			return hits, true, nil
		}
	}
	return hits, false, nil
}

func sortFound(list []found) {
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.val, a.val), strings.Compare(a.enc, b.enc))
	})
}

// best returns the best k candidates of base, delta and overlay. more reports whether there may be further candidates.
func (s *search) best(ctx context.Context, k int) (list []found, more bool, err error) {
	for {
		list, more, missed, err := s.bestOnce(ctx, k)
		if err != nil || !missed {
			return list, more, err
		}
		// During the scan, new entries of the overlay have hidden some of the best k rows. The rows that take their
		// places are unknown, so scan again.
	}
}

func (s *search) bestOnce(ctx context.Context, k int) (list []found, more, missed bool, err error) {
	var rows [2][]candidate
	for i := range s.v.set.levels {
		if rows[i], err = s.scan(ctx, i, k); err != nil {
			return nil, false, false, err
		}
	}
	// The overlay is read last, and under lock: for a row that it hid while the files were scanned, it has the newer
	// vector or the deletion.
	s.v.mu.RLock()
	for i, level := range rows {
		full := len(level) == k
		rows[i] = slices.DeleteFunc(level, func(c candidate) bool { return s.v.hidden[i].has(c.row) })
		missed = missed || full && len(rows[i]) < k
		more = more || full
	}
	list = s.overlay()
	s.v.mu.RUnlock()
	if missed {
		return nil, false, true, nil
	}
	for i, level := range rows {
		for _, c := range level {
			key, id, err := s.v.set.levels[i].key(s.q.Kind, c.row)
			if err != nil {
				return nil, false, false, err
			}
			enc, err := table.EncodeKey(key)
			if err != nil {
				return nil, false, false, err
			}
			list = append(list, s.found(key, enc, id, c.val))
		}
	}
	sortFound(list)
	if len(list) > k {
		list, more = list[:k], true
	}
	return list, more, false, nil
}

// overlay returns the rows of the overlay as candidates, except deleted and zero vectors. The caller holds v.mu. The
// budget of the log limits the number of rows, so best sorts all of them and does not need a heap.
func (s *search) overlay() []found {
	o := &s.v.over[s.q.Kind]
	n := len(o.keys)
	if n == 0 {
		return nil
	}
	out := make([]float32, n)
	s.kernel(s.vector, o.rows, out)
	list := make([]found, 0, n)
	for i, x := range out {
		if o.ids[i] == 0 || zero(o.rows[i*4*len(s.vector):(i+1)*4*len(s.vector)]) {
			continue
		}
		key, _ := table.Decode([]byte(o.keys[i]))
		list = append(list, s.found(key, o.keys[i], o.ids[i], s.value(x)))
	}
	return list
}

// keyCandidates compares only the vectors of the given document keys with the query. It returns them as candidates,
// best first.
func (s *search) keyCandidates(ctx context.Context, keys []string) ([]found, error) {
	var list []found
	var row []byte
	var out [1]float32
	for i, key := range keys {
		if i&1023 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		enc, err := table.EncodeKey(key)
		if err != nil {
			return nil, err
		}
		var id int64
		var ok bool
		if row, id, ok, err = s.v.Row(row[:0], s.q.Kind, key); err != nil {
			return nil, err
		}
		if !ok || zero(row) {
			continue
		}
		s.kernel(s.vector, row, out[:])
		list = append(list, s.found(key, enc, id, s.value(out[0])))
	}
	sortFound(list)
	return slices.CompactFunc(list, func(a, b found) bool { return a.enc == b.enc }), nil
}
