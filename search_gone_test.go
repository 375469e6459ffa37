package varve

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// A memory that expires while a search ranks it leaves its place to the next one.
func TestSearchOfWhatExpires(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var looks, jump atomic.Int64 // calls of the clock; the one from which on it is an hour later
	st := openTest(t, t.TempDir(), &Options{NoBackground: true, Clock: func() time.Time {
		if n := looks.Add(1); n > jump.Load() {
			return begin.Add(time.Hour)
		}
		return begin
	}})
	jump.Store(1 << 40)
	for id, ttl := range map[string]time.Duration{"a": time.Minute, "b": 0, "c": 24 * time.Hour} {
		m := Memory{ID: id, Content: "a boat on the lake", Embedding: []float32{1, 2, 3}}
		if ttl > 0 {
			m.ExpiresAt = begin.Add(ttl)
		}
		_, err := st.Put(ctx, m)
		must(t, err)
	}
	for name, q := range map[string]Query{
		"vector": {Vector: []float32{1, 2, 3}, Limit: 1, MinScore: 0.99}, "words": {Text: "boat lake", Limit: 1},
		"both": {Vector: []float32{1, 2, 3}, Text: "boat", Limit: 1}, "two": {Text: "boat", Limit: 2}, "offset": {Text: "boat", Limit: 1, Offset: 1},
	} {
		found := map[string]bool{}
		for at := int64(0); ; at++ {
			looks.Store(0)
			jump.Store(at)
			hits, err := st.Search(ctx, q)
			if err != nil || len(hits) != q.Limit {
				t.Errorf("%s: from look %d at the clock on: %d hits, %v", name, at, len(hits), err)
			}
			for _, h := range hits {
				found[h.ID] = true
			}
			if looks.Load() < at {
				break // it was over before
			}
		}
		if q.Offset == 0 && (!found["a"] || !found["b"]) {
			t.Errorf("%s: only %v were found: the case is too weak", name, found)
		}
	}
}
