package words

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
)

// A hash is found where it is from wherever before that the search begins, and whatever there is besides.
func TestWalkHashes(t *testing.T) {
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 1))
	const n = 1 << 17
	for name, value := range map[string]func(i int) uint64{
		"hashes":      func(int) uint64 { return rng.Uint64() },
		"often equal": func(int) uint64 { return rng.Uint64() >> 54 << 54 },
		"all equal":   func(int) uint64 { return 7 },
		"low":         func(int) uint64 { return rng.Uint64N(1000) },
		"high":        func(int) uint64 { return math.MaxUint64 - rng.Uint64N(1000) },
		"powers":      func(int) uint64 { return 1 << rng.Uint64N(64) },
		"two heaps":   func(i int) uint64 { return uint64(i%2)*(math.MaxUint64-n) + uint64(i) },
	} {
		for _, n := range []int{0, 1, 2, 3, 17, 1000, n} {
			all := make([]uint64, n)
			for i := range all {
				all[i] = value(i)
			}
			slices.Sort(all)
			b := columnOf(all)
			for i := range 2000 {
				h := rng.Uint64()
				if n > 0 && i%3 > 0 {
					h = all[rng.IntN(n)] + uint64(i%5) - 2
				}
				switch i {
				case 0:
					h = 0
				case 1:
					h = math.MaxUint64
				}
				want, _ := slices.BinarySearch(all, h)
				if at := walkHashes(b, rng.IntN(want+1), h); at != want {
					t.Fatalf("%s, %d: %d is at %d, want %d", name, n, h, at, want)
				}
			}
		}
	}
}

// What is in no order, as in a forged file, ends the search too.
func TestWalkHashesUnsorted(t *testing.T) {
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 1000 {
		all := make([]uint64, 1+rng.IntN(300))
		for i := range all {
			all[i] = rng.Uint64()
		}
		if at := walkHashes(columnOf(all), rng.IntN(len(all)+1), rng.Uint64()); at < 0 || at > len(all) {
			t.Fatalf("%d of %d", at, len(all))
		}
	}
}

func columnOf(all []uint64) (b []byte) {
	for _, h := range all {
		b = binary.LittleEndian.AppendUint64(b, h)
	}
	return b
}

// Many ids are found together where each is found alone: in parts that are walked through and in those that
// are not, newer and older rows, dead ones, and what nobody has.
func TestFindAll(t *testing.T) {
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 1))
	an := analyzer.New(analyzer.English)
	set, lsn := NewSet(), uint64(0)
	name := func() string { return fmt.Sprintf("d%05d", r.IntN(9000)) }
	newest := map[string]uint64{}
	for part, rows := range []int{5000, 1, 700, 40} {
		batch := map[string]*Doc{}
		for range rows {
			lsn++
			id := name()
			batch[id] = randomDoc(r, id, lsn)
		}
		var remove []string
		for range 100 {
			if id := name(); batch[id] == nil {
				remove = append(remove, id, id)
				delete(newest, id)
			}
		}
		for id, d := range batch {
			newest[id] = d.LSN
		}
		var err error
		if set, err = set.With(uint64(part+1), segmentOf(t, an, slices.Collect(maps.Values(batch))...), remove); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{0, 1, 3, 100, 3000} {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = name()
		}
		found, err := set.findAll(ids)
		if err != nil {
			t.Fatal(err)
		}
		versions, err := set.Versions(ids)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range ids {
			part, row, ok, err := set.find(id)
			if err != nil || ok != found[i].ok || ok && found[i].place != (place{part, row}) || versions[i] != newest[id] {
				t.Fatalf("%d: %s is at %d, %d, %v, found at %+v; version %d, want %d; %v", n, id, part, row, ok, found[i], versions[i], newest[id], err)
			}
		}
	}
}
