package words

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// byRow sorts as a comparison does, whatever the rows are.
func TestByRow(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var spare []own
	for _, rows := range []uint32{1, 2, 2047, 2048, 100_000, 5_000_000, 1<<32 - 1} {
		for _, n := range []int{0, 1, fewPosts - 1, fewPosts, 10_000} {
			posts := make([]own, n)
			for i := range posts {
				posts[i] = own{rng.Uint32N(rows), int32(i), int32(-i)}
			}
			want := slices.Clone(posts)
			slices.SortStableFunc(want, func(a, b own) int { return cmp.Compare(a.row, b.row) })
			posts, spare = byRow(posts, spare)
			if n < fewPosts { // the order of one row's posts does not matter
				slices.SortFunc(posts, func(a, b own) int {
					return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.content, b.content))
				})
			}
			if !slices.Equal(posts, want) {
				t.Errorf("%d posts of %d rows are not sorted", n, rows)
			}
		}
	}
}

func BenchmarkByRow(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []own // 200 terms, each in order
	for range 200 {
		for row := rng.Uint32N(300); row < 100_000; row += 1 + rng.Uint32N(600) {
			all = append(all, own{row, 1, 0})
		}
	}
	var posts, spare []own
	for b.Loop() {
		posts = append(posts[:0], all...)
		posts, spare = byRow(posts, spare)
	}
	b.ReportMetric(float64(len(all)), "posts")
}
