package words_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/filter"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/view/words"
	inverted "github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

// pieces are what values are made of: stop words, capitals, accents in both forms, what has no word, scripts
// without spaces, words that are cut, and what other types of JSON look like.
var pieces = []string{
	"the", "The", "of", "running", "RUNS", "runner", "café", "cafe\u0301", "CAFE", "Häuser", "haus", "straße", "ſ", "İ",
	"ＡＢＣ", "ﬁ", "東京都", "京", "スーパー", "กำ", "한국",
	"😀", "👩\u200d👧", "", "-", "_", "\n", "\t", "'", "\u0301", "\u200d", "\u00ad", "2024", "3.0", "3", "1e3", "-0", "true",
	"false", "null", "\xff", "\xe6\x9d",
	"docs/", "a.b", "x", "run", "pre", "prefix", strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 65),
	strings.Repeat("é", 40), strings.Repeat("東", 30),
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
		from, err := query.ReadSources(rapid.SampledFrom([]map[string][]string{nil, nil, {"speaker": {"from", "author"}},
			{"tag": {}, "title": {"tags", "title"}}}).Draw(r, "sources"))
		if err != nil {
			r.Fatal(err)
		}
		an := analyzer.New(rapid.SampledFrom([]string{"none", "en", "de"}).Draw(r, "language"))
		var known []string // values that documents have
		common := value.Draw(r, "common")
		draw := func(what string) string {
			if len(known) > 0 && rapid.Bool().Draw(r, what+" is known") {
				return rapid.SampledFrom(known).Draw(r, what)
			}
			return value.Draw(r, what)
		}
		live := map[string]map[string]any{}
		set, part := inverted.NewSet(), uint64(0)
		for range rapid.IntRange(1, 4).Draw(r, "segments") {
			b := build.NewBuilder(an)
			added := map[string]bool{}
			for range rapid.IntRange(0, 40).Draw(r, "documents") {
				m := &memstore.Memory{ID: fmt.Sprint(rapid.IntRange(0, 60).Draw(r, "id")), Content: value.Draw(r, "content"),
					Metadata: map[string]any{}}
				if added[m.ID] {
					continue
				}
				for range rapid.IntRange(0, 3).Draw(r, "members") {
					v := draw("value")
					known = append(known, v)
					m.Metadata[rapid.SampledFrom(members).Draw(r, "member")] = rapid.SampledFrom([]any{v, v,
						[]any{value.Draw(r, "other"), v, 7.0, nil}, []any{[]any{v}}, map[string]any{"x": v}, 2024.0, 3.0, 1000.0, true,
						nil}).Draw(r, "as")
				}
				if rapid.IntRange(0, 2).Draw(r, "has it") > 0 {
					m.Metadata["tags"] = common
				}
				d := words.DocOf(m, part+1, from)
				if rapid.IntRange(0, 9).Draw(r, "unread") == 0 {
					d.Texts, d.Time = nil, inverted.NoTime
				}
				added[m.ID], live[m.ID] = true, m.Metadata
				b.Add(d)
			}
			var remove []string
			for range rapid.IntRange(0, 5).Draw(r, "removals") {
				id := fmt.Sprint(rapid.IntRange(0, 60).Draw(r, "removed"))
				if live[id] != nil && !added[id] && !slices.Contains(remove, id) {
					remove = append(remove, id)
					delete(live, id)
				}
			}
			var seg *inverted.Segment
			if b.Rows() > 0 {
				var err error
				if seg, err = inverted.OpenSegment(b.Segment()); err != nil {
					r.Fatal(err)
				}
			}
			part++
			var err error
			if set, err = set.With(part, seg, remove); err != nil {
				r.Fatal(err)
			}
		}
		for range 5 {
			v := rapid.SampledFrom([]string{common, draw("condition"), draw("condition")}).Draw(r, "value")
			var f engine.Filters
			switch rapid.IntRange(0, 4).Draw(r, "kind") {
			case 0:
				f.Category = &v
			case 1:
				f.Key = &v
			case 2, 3:
				f.Where = append(f.Where, cond(r,
					rapid.SampledFrom(members).Draw(r, "name")+"="+strconv.Quote(v)+","+strconv.Quote(draw("second"))))
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
					r.Fatalf("%s: %q passes %q and is not among them", an.Language(), metadata,
						fmt.Sprintf("%q %q %+v", deref(f.Category), deref(f.Key), f.Where))
				}
			}
			if only != nil {
				narrowed, left, all = narrowed+1, left+n, all+len(live)
			}
		}
	})
	if narrowed == 0 || left*3 > 2*all {
		t.Errorf("narrowed %d times, %d of %d are left", narrowed, left, all)
	}
}

// TestNarrowKeeps: what could be lost is not: values that are no texts, or have no word, or only words that
// most have; words that go on behind a prefix, or are cut; a long value; a document that could not be read.
// Each case says whether it narrows.
func TestNarrowKeeps(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a word of 300 kilobytes, ", 12<<10)
	odd := []any{2024.0, 3.0, true, nil, "the", "", "😀", "prefixes of/docs", strings.Repeat("x", 300), long + "end",
		[]any{7.0, "seven"}, "unread", "ÉCOLE", "東京都"}
	conds := map[string]bool{
		"tags=2024": false, "tags=3": false, "tags=3.0": false, "tags=true": false, "tags=null": false, "tags=7": false,
		"tags=the": true, "tags=": false, "tags=😀": false, "tags=seven": true, "tags=common,seven": false,
		"tags=common": false, "other=seven": false,
		"tags^=pre": false, "tags^=prefixes": false, "tags^=prefixes ": false, `tags^="prefixes o"`: true,
		`tags^="prefixes of/"`: true, "tags^=東": false,
		"tags=" + strings.Repeat("x", 300): true, "tags^=" + strings.Repeat("x", 100): false,
		"tags=" + strconv.Quote(long+"end"): true, "tags^=" + strconv.Quote(long): true,
		"tags=ÉCOLE": true, "tags=東京都": true, "tags!=seven": false, "tags>=seven": false, "tags": false, "!tags": false,
		"tags=absent": true,
	}
	an := analyzer.New("en")
	b := build.NewBuilder(an)
	metadata := map[string]map[string]any{}
	for i := range 400 {
		m := &memstore.Memory{ID: fmt.Sprint(i), Metadata: map[string]any{"tags": "common"}}
		if i < len(odd) {
			m.Metadata["tags"] = odd[i]
		}
		d := words.DocOf(m, 1, query.DefaultSources())
		if odd[i%len(odd)] == "unread" && i < len(odd) {
			d.Texts, d.Time = nil, inverted.NoTime
		}
		metadata[m.ID] = m.Metadata
		b.Add(d)
	}
	seg, err := inverted.OpenSegment(b.Segment())
	if err != nil {
		t.Fatal(err)
	}
	set, err := inverted.NewSet().With(1, seg, nil)
	if err != nil {
		t.Fatal(err)
	}
	conds["tags=unread"] = true
	for s, narrows := range conds {
		f := &engine.Filters{Where: []*filter.Cond{cond(t, s)}}
		only, n, err := (&words.Snapshot{Set: set, Analyzer: an, From: query.DefaultSources()}).Narrow(f, 0)
		if err != nil {
			t.Fatal(err)
		}
		rows, some := only[1]
		if some != narrows || narrows && n > 5 {
			t.Errorf("%.40s: narrowed %v, to %d", s, some, n)
		}
		for id, m := range metadata {
			at, _, _, err := set.Find(id)
			if err != nil {
				t.Fatal(err)
			}
			if f.Where[0].Holds(m) && some && !rows.Has(at.Row) {
				t.Errorf("%.40s holds for %.40v, which is not among them", s, m)
			}
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func cond(t interface{ Fatal(...any) }, s string) *filter.Cond {
	c, err := filter.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFilters: over random histories of two handles filters leave the same of listings, sorted listings,
// counts and searches, whether the words are asked or all is read.
func TestFilters(t *testing.T) {
	t.Parallel()
	n := 3
	if proofs.Long() {
		n = 30
	}
	for i := range n {
		seed := proofs.Seed(t, 0)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			filtered(t, seed, []string{"en", "none", "de"}[i%3])
		})
	}
}

func filtered(t *testing.T, seed uint64, language string) {
	r := rand.New(rand.NewPCG(seed, 9))
	dir := t.TempDir()
	reopen := func() *varve.Store {
		st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		storetest.Inner(st).Engine.Tune().Few = 0
		return st
	}
	must := func(err error) {
		t.Helper()
		if err != nil && !errors.Is(err, varve.ErrNotFound) {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	stores := []*varve.Store{reopen(), reopen()}
	defer func() {
		for _, st := range stores {
			_ = st.Close()
		}
	}()
	words := func(language string, fields map[string][]string) {
		t.Helper()
		must(stores[0].Admin().UpdateConfig(t.Context(), func(c *varve.Config) error {
			c.TextLanguage, c.Text = language, &varve.TextConfig{Fields: fields}
			return nil
		}))
	}
	words(language, map[string][]string{"title": {"title", "from"}})
	valid := slices.DeleteFunc(slices.Clone(pieces), func(s string) bool { return !utf8.ValidString(s) })
	some := func() string {
		var s []string
		for range r.IntN(4) {
			s = append(s, valid[r.IntN(len(valid))])
		}
		return strings.Join(s, []string{"", " ", "/"}[r.IntN(3)])
	}
	var known []string // what memories have, or had
	values := func() string {
		if len(known) > 0 && r.IntN(4) > 0 {
			return known[r.IntN(len(known))]
		}
		return some()
	}
	written := func(id string) varve.Memory {
		m := varve.Memory{ID: id, Content: "boat " + some(), Embedding: []float32{1, r.Float32(), r.Float32()},
			QuickRecalScore: r.Float64(), Metadata: map[string]any{}}
		for range r.IntN(4) {
			v := values()
			if r.IntN(200) == 0 {
				v = strings.Repeat(fmt.Sprintf("%s long%d ", v, r.IntN(5)), 300<<10/(len(v)+7))
			}
			known = append(known, v)
			m.Metadata[members[r.IntN(len(members))]] = []any{v, v, v, []any{some(), v, 7}, 2024, 3.0, true, nil}[r.IntN(8)]
		}
		if r.IntN(2) == 0 {
			m.Metadata["session_id"] = fmt.Sprint("s", r.IntN(3))
		}
		return m
	}
	any := func() string { return fmt.Sprintf("%c-%d", 'a'+r.IntN(3), r.IntN(60)) }
	asked := &asked{}
	compared := 0
	for range 30 {
		st := stores[r.IntN(2)]
		switch r.IntN(12) {
		case 0:
			must(st.Admin().Compact(t.Context()))
		case 1:
			must(st.Admin().RebuildIndex(t.Context()))
		case 2:
			i := r.IntN(2)
			must(stores[i].Close())
			stores[i] = reopen()
		case 3, 4, 5:
			must(st.Flush(t.Context()))
		case 6:
			if r.IntN(2) == 0 {
				words([]string{"en", "none", "de"}[r.IntN(3)],
					map[string][]string{"speaker": {"from", "speaker"}, "tag": {"tags", "other"}})
			}
			must(st.Delete(t.Context(), any()))
		default:
			b := new(varve.Batch)
			for range 1 + r.IntN(40) {
				b.Put(written(any()))
			}
			must(st.Apply(t.Context(), b))
		}
		for range 4 {
			compared += bothWays(t, r, seed, stores[r.IntN(2)], asked, values)
		}
	}
	if asked.among < 20 || compared < 20 {
		t.Errorf("seed %d: the words were asked %d times, and %d memories passed", seed, asked.among, compared)
	}
}

// bothWays compares what some filters leave when the words are asked with what they leave of all.
func bothWays(t *testing.T, r *rand.Rand, seed uint64, st *varve.Store, asked *asked, values func() string) int {
	t.Helper()
	v, quoted := values(), strconv.Quote(values())
	what := []string{"category", "key", "tags=" + quoted, "speaker=" + quoted + "," + strconv.Quote(v),
		"title^=" + strconv.Quote(v[:r.IntN(len(v)+1)]), "from=" + quoted, "other=" + quoted, "author=3",
		"tags=true"}[r.IntN(9)]
	var filters []varve.Filter
	switch what {
	case "category":
		filters = append(filters, varve.InCategory(v))
	case "key":
		filters = append(filters, varve.WithKey(v))
	default:
		f, err := varve.Where(what)
		if err != nil {
			t.Fatal(err)
		}
		filters = append(filters, f)
	}
	switch r.IntN(8) {
	case 0:
		filters = append(filters, varve.InSession("s1"))
	case 1:
		filters = append(filters, varve.WithPrefix("b"))
	case 2:
		filters = append(filters, varve.Created(time.Now().Add(-time.Hour), time.Time{}))
	}
	eng := storetest.Inner(st).Engine
	orders, few := eng.Tune().Orders, eng.Tune().Few
	defer func() { eng.Tune().Orders, eng.Tune().Few = orders, few }()
	after := fmt.Sprintf("b-%d", r.IntN(60))
	answer := func() (s string, passed int) {
		var b strings.Builder
		for i, list := range [][]varve.Filter{filters, append(slices.Clone(filters), varve.After(after))} {
			for m, err := range st.Memories(t.Context(), list...) {
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				fmt.Fprintln(&b, i, m.ID, m.Version)
				passed++
			}
		}
		fmt.Fprintln(&b, "sorted", listing(t, st, "-score", 0, 3, nil, filters...))
		n, err := st.Count(t.Context(), filters...)
		fmt.Fprintln(&b, "count", n, err)
		for _, q := range []varve.Query{{Text: "boat run docs", Limit: 50}, {Vector: []float32{1, 0, 1}, Limit: 50},
			{Text: "boat", Vector: []float32{1, 0, 1}, Limit: 20, Offset: 1}} {
			hits, err := st.Search(t.Context(), q, filters...)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, h := range hits {
				fmt.Fprintln(&b, "hit", h.ID, h.Score)
			}
		}
		return b.String(), passed
	}
	eng.Tune().Orders, eng.Tune().Few = nil, 1<<40
	want, passed := answer()
	asked.Orders = orders
	eng.Tune().Orders, eng.Tune().Few = asked, 0
	if got, _ := answer(); got != want {
		t.Fatalf("seed %d: with %.200s, %q\n%s\nwant\n%s", seed, what, v[:min(len(v), 200)], got, want)
	}
	return passed
}
