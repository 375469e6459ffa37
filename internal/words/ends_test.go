package words

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
)

// countedContext is a context that ends after a number of calls of Err.
type countedContext struct {
	context.Context
	left int
}

func (c *countedContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestMergeEnds: the build of a segment, and a merge of segments, end when their context ends, at each moment that they
// check it, also between their terms: for a large segment they take seconds.
func TestMergeEnds(t *testing.T) {
	t.Parallel()
	an := analyzer.New(analyzer.None)
	add := func(b *build.Builder, part int) {
		for i := range 600 {
			b.Add(&Doc{ID: fmt.Sprint(part, "-", i), LSN: uint64(i + 1),
				Texts: []query.Text{{Text: fmt.Sprintf("word%d other%d", i, i)}}})
		}
	}
	set := NewSet()
	for part := range 2 {
		for left := 0; ; left++ {
			b := build.NewBuilder(an)
			add(b, part)
			w, err := b.Writer(&countedContext{t.Context(), left})
			if err != nil {
				if !errors.Is(err, context.Canceled) || w != nil {
					t.Fatalf("ended after %d checks: %v, %v", left, w, err)
				}
				continue
			}
			if least := 1200 / build.PollEvery; left < least {
				t.Errorf("%d checks in a build of 1200 terms, want at least %d", left, least)
			}
			seg, err := OpenSegment(w.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if set, err = set.With(uint64(part+1), seg, nil); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	for left := 0; ; left++ {
		w, moved, err := set.Merge(&countedContext{t.Context(), left}, []uint64{1, 2})
		if err != nil {
			if !errors.Is(err, context.Canceled) || w != nil || moved != nil {
				t.Fatalf("ended after %d checks: %v", left, err)
			}
			continue
		}
		if least := 2400 / build.PollEvery; left < least {
			t.Errorf("%d checks in a merge of 1200 rows and 1200 terms, want at least %d", left, least)
		}
		seg, err := OpenSegment(w.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if seg.Rows != 1200 {
			t.Errorf("%d rows, want 1200", seg.Rows)
		}
		if err := seg.Check(); err != nil {
			t.Error(err)
		}
		return
	}
}
