package trace

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// TestContents verifies that pieces are found wherever they are, as by bytes.Contains, however many there are.
func TestContents(t *testing.T) {
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 0))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab"[rng.IntN(2)] // so that many beginnings are equal
		}
		return b
	}
	for round := range 300 {
		var c contents
		if !c.isEmpty() || c.foundIn(random(100)) {
			t.Fatal("nothing was learned")
		}
		var all [][]byte
		for range 1 + rng.IntN(50) {
			p := random(pieceSize + rng.IntN(8))
			all = append(all, p)
			c.add(p)
			c.add(bytes.Clone(p))
		}
		n := 0
		for _, list := range c.pieces {
			n += len(list)
		}
		if n > len(all) {
			t.Fatalf("seed %d: %d pieces for %d", seed, n, len(all))
		}
		for range 20 {
			b := random(rng.IntN(200))
			if rng.IntN(2) == 0 {
				b = append(append(b, all[rng.IntN(len(all))]...), random(rng.IntN(20))...)
			}
			if got, want := c.foundIn(b), has(b, all); got != want {
				t.Fatalf("seed %d, round %d: %v, want %v in %q", seed, round, got, want, b)
			}
		}
	}
}

func has(b []byte, list [][]byte) bool {
	return slices.ContainsFunc(list, func(part []byte) bool { return bytes.Contains(b, part) })
}

func BenchmarkContents(b *testing.B) {
	var set Set
	for v := range 100 {
		var said bytes.Buffer
		for i := range 30 {
			fmt.Fprintf(&said, "version %d of what was said about %d; ", v, i*v)
		}
		set.Learn(said.String())
	}
	body := bytes.Repeat([]byte("a body of working memory that has nothing of it; "), 10)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if set.content.foundIn(body) {
			b.Fatal("found")
		}
	}
}
