package words_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/internal/where"
	inverted "github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

// pieces are what values are made of: stop words, capitals, accents in both forms, what has no word, scripts
// without spaces, words that are cut, and what other types of JSON look like.
var pieces = []string{
	"the", "The", "of", "running", "RUNS", "runner", "café", "cafe\u0301", "CAFE", "Häuser", "haus", "straße", "ſ", "İ", "ＡＢＣ", "ﬁ", "東京都", "京", "スーパー", "กำ", "한국",
	"😀", "👩\u200d👧", "", "-", "_", "\n", "\t", "'", "\u0301", "\u200d", "\u00ad", "2024", "3.0", "3", "1e3", "-0", "true", "false", "null", "\xff", "\xe6\x9d",
	"docs/", "a.b", "x", "run", "pre", "prefix", strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("é", 40), strings.Repeat("東", 30),
}

var (
	piece   = rapid.OneOf(rapid.SampledFrom(pieces), rapid.SampledFrom(pieces), rapid.String())
	between = rapid.SampledFrom([]string{"", "", " ", ",", "/"})
	value   = rapid.Custom(func(r *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(r, "pieces"), between.Draw(r, "between"))
	})
)

// members are names of the metadata; two are of no field, and one is by setting only.
var members = []string{"category", "key", "tags", "speaker", "author", "title", "caption", "from", "other"}

// TestNarrow: whatever holds for a document, its row is among those that are left: of any text in any
// language, in several segments, beside those that are deleted and those that could not be read.
func TestNarrow(t *testing.T) {
	t.Parallel()
	narrowed, left, all := 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		from, err := query.ReadSources(rapid.SampledFrom([]map[string][]string{nil, nil, {"speaker": {"from", "author"}}, {"tag": {}, "title": {"tags", "title"}}}).Draw(r, "sources"))
		if err != nil {
			r.Fatal(err)
		}
		an := analyzer.New(rapid.SampledFrom([]string{"none", "en", "de"}).Draw(r, "language"))
		var known []string // values that documents have
		draw := func(what string) string {
			if len(known) > 0 && rapid.Bool().Draw(r, what+" is known") {
				return rapid.SampledFrom(known).Draw(r, what)
			}
			return value.Draw(r, what)
		}
		live := map[string]map[string]any{}
		set, part := inverted.NewSet(), uint64(0)
		for range rapid.IntRange(1, 4).Draw(r, "segments") {
			b := inverted.NewBuilder(an)
			added := map[string]bool{}
			for range rapid.IntRange(0, 40).Draw(r, "documents") {
				m := &memstore.Memory{ID: fmt.Sprint(rapid.IntRange(0, 60).Draw(r, "id")), Content: value.Draw(r, "content"), Metadata: map[string]any{}}
				if added[m.ID] {
					continue
				}
				for range rapid.IntRange(0, 3).Draw(r, "members") {
					v := draw("value")
					known = append(known, v)
					m.Metadata[rapid.SampledFrom(members).Draw(r, "member")] = rapid.SampledFrom([]any{v, v, []any{value.Draw(r, "other"), v, 7.0, nil}, []any{[]any{v}}, map[string]any{"x": v}, 2024.0, 3.0, 1000.0, true, nil}).Draw(r, "as")
				}
				d := words.DocOf(m, part+1, from)
				if rapid.IntRange(0, 9).Draw(r, "unread") == 0 {
					d.Texts, d.Time = nil, inverted.NoTime
				}
				added[m.ID], live[m.ID] = true, m.Metadata
				b.Add(d)
			}
			var remove []string
			for id := range live {
				if !added[id] && id == fmt.Sprint(rapid.IntRange(0, 60).Draw(r, "removed")) {
					remove = append(remove, id)
					delete(live, id)
				}
			}
			data, err := b.Segment()
			if err != nil {
				r.Fatal(err)
			}
			var seg *inverted.Segment
			if data != nil {
				if seg, err = inverted.OpenSegment(data); err != nil {
					r.Fatal(err)
				}
			}
			part++
			if set, err = set.With(part, seg, remove); err != nil {
				r.Fatal(err)
			}
		}
		for range 5 {
			v := draw("condition")
			var f engine.Filters
			switch rapid.IntRange(0, 4).Draw(r, "kind") {
			case 0:
				f.Category = &v
			case 1:
				f.Key = &v
			case 2, 3:
				f.Where = append(f.Where, cond(r, rapid.SampledFrom(members).Draw(r, "name")+"="+strconv.Quote(v)+","+strconv.Quote(draw("second"))))
			default:
				v = v[:rapid.IntRange(0, len(v)).Draw(r, "length")]
				f.Where = append(f.Where, cond(r, rapid.SampledFrom(members).Draw(r, "name")+"^="+strconv.Quote(v)))
			}
			if rapid.IntRange(0, 4).Draw(r, "two") == 0 {
				f.Where = append(f.Where, cond(r, "tags="+strconv.Quote(draw("third"))))
			}
			only, n, err := (&words.Snapshot{Set: set, Analyzer: an, From: from}).Narrow(&f, 0)
			if err != nil {
				r.Fatal(err)
			}
			for id, metadata := range live {
				at, _, ok, err := set.Find(id)
				if err != nil || !ok {
					r.Fatal(id, ok, err)
				}
				rows, some := only[at.Part]
				if f.Memory(&memstore.Memory{Metadata: metadata}) && some && !rows.Has(at.Row) {
					r.Fatalf("%s: %q passes %q and is not among them", an.Language(), metadata, fmt.Sprintf("%q %q %+v", deref(f.Category), deref(f.Key), f.Where))
				}
			}
			if only != nil {
				narrowed, left, all = narrowed+1, left+n, all+len(live)
			}
		}
	})
	if narrowed == 0 || left*3 > all {
		t.Errorf("narrowed %d times, %d of %d are left", narrowed, left, all)
	}
}

func deref(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func cond(t interface{ Fatal(...any) }, s string) *where.Cond {
	c, err := where.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
