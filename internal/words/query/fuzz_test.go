package query

import (
	"testing"

	"github.com/varve-db/varve/internal/words/analyzer"
)

// FuzzParse: no text is a query that fails, and what it looks for is bounded by it.
func FuzzParse(f *testing.F) {
	f.Add(`rome -"to the lake" tag:travel OR tag:"deep learning" rom* +a 東京都`)
	f.Add(`"unbalanced -`)
	f.Fuzz(func(t *testing.T, s string) {
		for _, language := range []string{analyzer.English, analyzer.None} {
			q := Parse(s, analyzer.New(language))
			if q.Words() > len(s) {
				t.Fatalf("%q: %d words", s, q.Words())
			}
			q.Holds([]Text{{Content, s}}, analyzer.New(language))
		}
	})
}
