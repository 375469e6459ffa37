package words

import (
	"errors"
	"fmt"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
)

// FuzzSegment: a segment whose sums are right may say anything; it is refused or searched, and that
// ends.
func FuzzSegment(f *testing.F) {
	f.Add(uint32(headerBytes), byte(1), uint32(200), byte(7))
	f.Add(uint32(12), byte(3), uint32(36), byte(1))
	an := analyzer.New(analyzer.English)
	b := build.NewBuilder(an)
	for i := range 40 {
		b.Add(&Doc{ID: fmt.Sprint("d", i), LSN: uint64(i), Session: fmt.Sprint("s", i%4), Time: int64(i), Texts: []query.Text{
			{Field: query.Content, Text: fmt.Sprintf("rome lake answer boat%d boat%d the walking", i, i%3)}, {Field: query.Name, Text: "Anna"}, {Field: query.Tags, Text: "travel"},
		}})
	}
	data := b.Segment()
	whole, err := OpenSegment(data)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, at1 uint32, x1 byte, at2 uint32, x2 byte) {
		forged := append([]byte(nil), data[:whole.end]...)
		forged[int(at1)%len(forged)] ^= x1
		forged[int(at2)%len(forged)] ^= x2
		s, err := OpenSegment(build.Sealed(forged))
		if err == nil {
			var set *Set
			if set, err = NewSet().With(1, s, []string{"d3", "x"}); err == nil {
				for _, q := range []string{"rome boat1", "boa*", "anna +lake -walking", "tag:travel"} {
					if _, e := set.Search(t.Context(), query.Parse(q, an), Filter{}, 10, 0, nil); e != nil {
						err = e
					}
				}
				if _, _, e := set.Merge(t.Context(), []uint64{1}); e != nil {
					err = e
				}
			}
		}
		if err != nil && !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNewerFormat) {
			t.Fatal(err)
		}
	})
}
