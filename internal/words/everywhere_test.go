package words

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
)

// TestEverywhere: a word that every document of a large store has counts for little, and finds all of them;
// with another word the documents that have that one are the first; without it in none nothing is found.
func TestEverywhere(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	n, most := 20_000, 8_000
	if proofs.Long() {
		n, most = 1_000_000, 1<<17
	}
	an := analyzer.New(analyzer.English)
	set := NewSet()
	for at := 0; at < n; {
		b := build.NewBuilder(an)
		for end := min(at+most, n); at < end; at++ {
			b.Add(inContent(fmt.Sprintf("d%07d", at), fmt.Sprint("s", at/10), fmt.Sprintf("everywhere number%d rest%d", at, at%3), int64(at)))
		}
		seg, err := OpenSegment(b.Segment())
		if err == nil {
			set, err = set.With(uint64(at), seg, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		text  string
		first []string // ids; nil: nothing
	}{
		{"everywhere", []string{"d0000001", "d0000002"}}, // in the middle of their sessions, which all have as much
		{"everywhere number7", []string{"d0000007", "d0000008", "d0000006"}},
		{"+everywhere number12345", []string{"d0012345", "d0012346", "d0012344"}},
		{"everywhere -everywhere", nil},
		{"+everywhere +nowhere", nil},
		{"number7 -everywhere", nil},
	} {
		began := time.Now()
		hits, err := set.Search(t.Context(), query.Parse(c.text, an), Filter{Each: sideBySide}, 10, 0, nil)
		if err != nil || (len(hits) != 10) == (c.first != nil) {
			t.Errorf("%q: %d hits, %v", c.text, len(hits), err)
			continue
		}
		for i, id := range c.first {
			if hits[i].ID != id || !(hits[i].Score > 0) || math.IsInf(hits[i].Score, 0) {
				t.Errorf("%q: %d is %+v, want %s", c.text, i, hits[i], id)
			}
		}
		t.Logf("%q: %v", c.text, time.Since(began))
	}
}
