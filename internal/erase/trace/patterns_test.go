package trace

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// TestPatterns verifies that patterns and names are found wherever they are, as by bytes.Contains.
func TestPatterns(t *testing.T) {
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 0))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abc"[rng.IntN(3)]
		}
		return b
	}
	for round := range 300 {
		var p patterns
		var ns names
		var all [][]byte
		if p.foundIn(random(50)) || ns.begin("a") {
			t.Fatal("nothing was added")
		}
		for range 1 + rng.IntN(20) {
			b := random(2 + rng.IntN(8))
			all = append(all, b)
			p.add(b)
			ns.add(string(b))
		}
		for range 50 {
			b := random(rng.IntN(40))
			want := slices.ContainsFunc(all, func(part []byte) bool { return bytes.Contains(b, part) })
			if got := p.foundIn(b); got != want {
				t.Fatalf("seed %d, round %d: %v, want %v in %q", seed, round, got, want, b)
			}
			want = slices.ContainsFunc(all, func(part []byte) bool { return bytes.HasPrefix(b, part) })
			if got := ns.begin(string(b)); got != want {
				t.Fatalf("seed %d, round %d: %v, want %v at the beginning of %q", seed, round, got, want, b)
			}
		}
	}
}

// BenchmarkPatterns shows that the time for a file does not grow with the number of ids.
func BenchmarkPatterns(b *testing.B) {
	var p patterns
	for i := range 100_000 {
		p.add([]byte(`"id": "memory-` + strings.Repeat(string(rune('a'+i%26)), 1+i%20) + `"`))
	}
	body := bytes.Repeat([]byte(`{"id": "another", "content": "a body that has nothing of it"}; `), 100)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if p.foundIn(body) {
			b.Fatal("found")
		}
	}
}
