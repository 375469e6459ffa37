package words

import (
	"errors"
	"fmt"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/words/analyzer"
)

// FuzzSegment: a segment whose sums are right may say anything; it is refused or searched, and that
// ends.
func FuzzSegment(f *testing.F) {
	f.Add(uint32(headerBytes), byte(1), uint32(200), byte(7))
	f.Add(uint32(12), byte(3), uint32(36), byte(1))
	an := analyzer.New(analyzer.English)
	b := NewBuilder(an)
	for i := range 40 {
		b.Add(&Doc{ID: fmt.Sprint("d", i), LSN: uint64(i), Session: fmt.Sprint("s", i%4), Time: int64(i), Texts: []Text{
			{Content, fmt.Sprintf("rome lake answer boat%d boat%d the walking", i, i%3)}, {Name, "Anna"}, {Tags, "travel"},
		}})
	}
	data, err := b.Segment()
	if err != nil {
		f.Fatal(err)
	}
	whole, err := OpenSegment(data)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, at1 uint32, x1 byte, at2 uint32, x2 byte) {
		forged := append([]byte(nil), data[:whole.end]...)
		forged[int(at1)%len(forged)] ^= x1
		forged[int(at2)%len(forged)] ^= x2
		s, err := OpenSegment(sealed(forged))
		if err == nil {
			var set *Set
			if set, err = NewSet().With(1, s, []string{"d3", "x"}); err == nil {
				for _, q := range []string{"rome boat1", "boa*", "anna +lake -walking", "tag:travel"} {
					if _, e := set.Search(t.Context(), Parse(q, an), Filter{}, 10, 0, nil); e != nil {
						err = e
					}
				}
				if _, _, e := set.Merge([]uint64{1}); e != nil {
					err = e
				}
			}
		}
		if err != nil && !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNewerFormat) {
			t.Fatal(err)
		}
	})
}

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
			q.Holds(&Doc{Texts: []Text{{Content, s}}}, analyzer.New(language))
		}
	})
}
