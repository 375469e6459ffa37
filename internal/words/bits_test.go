package words

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
)

// TestEveryBit: each bit of a small segment, and of a state, makes it damage when it is opened; one of a large
// segment when it is checked, and until then searches give what they gave, or damage.
func TestEveryBit(t *testing.T) {
	t.Parallel()
	an := analyzer.New(analyzer.English)
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 1))
	var docs []*Doc
	for i := range 12 {
		docs = append(docs, randomDoc(r, fmt.Sprint("d", i), uint64(i+1)))
	}
	small := segmentOf(t, an, docs...)
	for bit := range len(small.b) * 8 {
		bad := slices.Clone(small.b)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := OpenSegment(bad); !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNewerFormat) {
			t.Fatalf("seed %d: bit %d of a small segment: %v", seed, bit, err)
		}
	}
	part := &Part{ID: 1, Seg: small, dead: nil, deaths: 1, laid: new(layoutOnce), links: map[uint32]link{0: {hasBehind: true, behind: Ref{1, 5}}}}
	part.dead = part.dead.With(3, small.Rows)
	state := part.State()
	for bit := range len(state) * 8 {
		bad := slices.Clone(state)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := ReadState(1, small, bad); !errors.Is(err, errs.ErrCorrupt) {
			t.Fatalf("seed %d: bit %d of a state: %v", seed, bit, err)
		}
	}

	docs = nil
	for i := range 1_700 {
		d := randomDoc(r, fmt.Sprintf("document%05d", i), uint64(i+1))
		d.Texts[0].Text += fmt.Sprintf(" number%d", i)
		docs = append(docs, d)
	}
	large := segmentOf(t, an, docs...)
	if len(large.b) < 3*blockBytes {
		t.Fatal(len(large.b))
	}
	texts := []string{"rome boat", "number1*", "answers -lake", "number77"}
	find := func(b []byte) (all [][]Hit, err error) {
		seg, err := OpenSegment(b)
		if err != nil {
			return nil, err
		}
		set, err := NewSet().With(1, seg, nil)
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			hits, err := set.Search(t.Context(), query.Parse(text, an), Filter{}, 10, 0, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, hits)
		}
		return all, nil
	}
	want, err := find(large.b)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for range 100 {
		bit := r.IntN(len(large.b) * 8)
		bad := slices.Clone(large.b)
		bad[bit/8] ^= 1 << (bit % 8)
		got, err := find(bad)
		switch {
		case errors.Is(err, errs.ErrCorrupt), errors.Is(err, errs.ErrNewerFormat):
		case err != nil || !reflect.DeepEqual(got, want):
			t.Errorf("seed %d: bit %d of a large segment: other hits, %v", seed, bit, err)
		default:
			same++
		}
		if seg, err := OpenSegment(bad); err == nil && seg.Check() == nil {
			t.Errorf("seed %d: bit %d of a large segment is not found", seed, bit)
		}
	}
	t.Logf("%d of 100 change nothing of these searches", same)
}
