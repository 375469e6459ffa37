package words_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/memstore"
)

// BenchmarkFilters has filters that one of 1,000 memories of 500 bytes passes, or none, with what the words
// say of them and without. VARVE_LONG: a million memories, otherwise 200,000.
func BenchmarkFilters(b *testing.B) {
	n := 200_000
	if proofs.Long() {
		n = 1_000_000
	}
	st, err := varve.Open(b.Context(), b.TempDir(), &varve.Options{NoBackground: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			b.Error(err)
		}
	}()
	begin := time.Now()
	r := rand.New(rand.NewPCG(1, 1))
	if _, err := st.PutAll(b.Context(), func(yield func(varve.Memory) bool) {
		for i := range n {
			var s strings.Builder
			for s.Len() < 420 {
				fmt.Fprintf(&s, "w%x ", int(r.ExpFloat64()*2000))
			}
			m := varve.Memory{ID: fmt.Sprintf("m%07d", i), Content: s.String(), QuickRecalScore: r.Float64(),
				Metadata: map[string]any{
					"category": fmt.Sprintf("c%d", r.IntN(1000)), "tags": []string{fmt.Sprintf("t%d", r.IntN(1000))},
					"speaker": fmt.Sprintf("Speaker %d", r.IntN(1000)),
				}}
			if !yield(m) {
				return
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	if err := st.Admin().Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d memories in %v", n, time.Since(begin))
	where := func(s string) varve.Filter {
		f, err := varve.Where(s)
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	filters := []struct {
		name string
		f    varve.Filter
	}{{"category", varve.InCategory("c7")}, {"tag", where("tags=t7")}, {"speaker", where(`speaker="Speaker 7"`)},
		{"none", varve.InCategory("absent")}}
	first := func(most int, filters ...varve.Filter) error {
		for _, err := range st.Memories(b.Context(), filters...) {
			if most--; err != nil || most == 0 {
				return err
			}
		}
		return nil
	}
	eng := storetest.Inner(st).Engine
	few := eng.Tune().Few
	for _, asked := range []string{"words", "all"} {
		eng.Tune().Few = few
		if asked == "all" {
			eng.Tune().Few = 1 << 40
		}
		for _, f := range filters {
			for what, do := range map[string]func() error{
				"sorted": func() error {
					o, err := memstore.ParseOrder("-score", "")
					if err != nil {
						return err
					}
					return first(50, f.f, varve.Sorted(o))
				},
				"list":   func() error { return first(50, f.f) },
				"count":  func() error { _, err := st.Count(b.Context(), f.f); return err },
				"search": func() error { _, err := st.Search(b.Context(), varve.Query{Text: "w7 w100 w3e8"}, f.f); return err },
			} {
				b.Run(fmt.Sprintf("%s/%s/%s", asked, f.name, what), func(b *testing.B) {
					for b.Loop() {
						if err := do(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
