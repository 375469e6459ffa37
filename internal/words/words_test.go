package words

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
)

// model is the score as the package comment has it, over all documents.
type model struct {
	docs map[string]*Doc
	an   *analyzer.Analyzer
}

func (m *model) counts(d *Doc) (times map[string]*[query.Fields]int, length int) {
	times = map[string]*[query.Fields]int{}
	for _, t := range d.Texts {
		m.an.Each([]byte(t.Text), func(term []byte, pair bool) {
			if t.Field == query.Content && !pair && !analyzer.Common(string(term)) {
				length++
			}
			n := times[string(term)]
			if n == nil {
				n = new([query.Fields]int)
				times[string(term)] = n
			}
			if n[t.Field] == 0 || !analyzer.Once(term, pair) {
				n[t.Field]++
			}
		})
	}
	return times, length
}

func (m *model) search(q *query.Query, n int) []Hit {
	var list []*Doc
	for _, d := range m.docs {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *Doc) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID))
	})
	times, lengths, total := make([]map[string]*[query.Fields]int, len(list)), make([]int, len(list)), 0
	for i, d := range list {
		times[i], lengths[i] = m.counts(d)
		total += lengths[i]
	}
	avg := max(float64(total)/float64(len(list)), 1/float64(len(list)))
	scores := make([]float64, len(list))
	barred := make([]bool, len(list))
	has := func(i int, w *query.Word, fields query.FieldSet) (content, other int32) {
		for term, n := range times[i] {
			if term != w.Term && !(w.Prefix && strings.HasPrefix(term, w.Term)) &&
				!(w.Common && strings.HasPrefix(term, analyzer.AsCommon(w.Term))) {
				continue
			}
			for f, k := range n {
				switch {
				case k == 0 || fields&query.Of(query.Field(f)) == 0:
				case query.Field(f) == query.Content:
					content += int32(k)
				default:
					other += weightOf(query.Field(f)) * int32(k)
				}
			}
		}
		return content, other
	}
	names, barsNames, common := map[string]bool{}, map[string]bool{}, false
	for _, w := range q.All {
		if w.Fields != query.AllFields || w.Prefix || w.Not {
			continue
		}
		any := false
		for i := range list {
			if n := times[i][w.Term]; n != nil {
				any = true
				names[w.Term] = names[w.Term] || n[query.Name] > 0
			}
		}
		common = common || any && !names[w.Term]
		barsNames[w.Term] = barsNames[w.Term] || w.Must || w.Either
	}
	excluded, itself, words, nearby := make([]bool, len(list)), make([]int, len(list)), 0, 0.0
	for _, w := range q.All {
		for i := range list {
			content, other := has(i, &w, w.Fields)
			excluded[i] = excluded[i] || w.Not && (content > 0 || other > 0)
		}
	}
	for _, w := range q.All {
		fields := w.Fields
		isName := common && fields == query.AllFields && !w.Prefix && !w.Not && names[w.Term] && !barsNames[w.Term]
		if isName {
			fields = query.Of(query.Name)
		}
		df := 0
		content, other := make([]int32, len(list)), make([]int32, len(list))
		for i := range list {
			content[i], other[i] = has(i, &w, fields)
			is := content[i] > 0 || other[i] > 0
			if is {
				df++
			}
			if w.Not == is && (w.Not || w.Must) {
				barred[i] = true
			}
			if excluded[i] {
				content[i], other[i] = 0, 0
			} else if is && !w.Not && !w.Quiet {
				itself[i]++
			}
		}
		if w.Not || w.Quiet || df == 0 {
			continue
		}
		d := min(float64(df)*1.7, float64(len(list)))
		if isName {
			d = float64(df)
		}
		idf := math.Log(1 + (float64(len(list))-d+0.5)/(d+0.5))
		words++
		longest, least := 0, math.Inf(1)
		for i := range list {
			content, other := has(i, &w, fields)
			if content > 0 {
				longest = max(longest, lengths[i])
			} else if other > 0 {
				least = 0.5
			}
		}
		if longest > 0 {
			least = min(least, 1/(0.6+float64(0.4*float64(float64(longest)/avg))))
		}
		nearby = least / (least + 1.2)
		c := func(i int) float64 {
			return float64(content[i]) / (0.6 + float64(0.4*float64(float64(lengths[i])/avg)))
		}
		for i, d := range list {
			x := c(i) + float64(float64(other[i])/unit)
			if i > 0 && d.Session != "" && list[i-1].Session == d.Session {
				x += float64(0.5 * c(i-1))
			}
			if i+1 < len(list) && d.Session != "" && list[i+1].Session == d.Session {
				x += float64(0.2 * c(i+1))
			}
			if x > 0 {
				scores[i] += float64(idf * float64(float64(2.2*x)/(x+1.2)))
			}
		}
	}
	for i := range list {
		for _, g := range q.Either {
			if !slices.ContainsFunc(g, func(m query.Member) bool {
				return !slices.ContainsFunc(m.Words, func(w int) bool {
					content, other := has(i, &q.All[w], q.All[w].Fields)
					return content == 0 && other == 0
				})
			}) {
				barred[i] = true
			}
		}
	}
	sessions := map[string][]float64{}
	for i, d := range list {
		if !excluded[i] {
			sessions[d.Session] = append(sessions[d.Session], scores[i])
		}
	}
	var hits []Hit
	for i, d := range list {
		if scores[i] == 0 || barred[i] {
			continue
		}
		share := sessionShare * scores[i]
		if d.Session != "" {
			best := slices.Clone(sessions[d.Session])
			slices.SortFunc(best, func(a, b float64) int { return cmp.Compare(b, a) })
			sum := 0.0
			for _, x := range best[:min(sessionBest, len(best))] {
				sum += x
			}
			share = sessionShare * sum
		}
		if itself[i] == 0 && words == 1 {
			scores[i] = float64(scores[i] * nearby)
			share = float64(sessionShare * scores[i])
		}
		hits = append(hits, Hit{ID: d.ID, LSN: d.LSN, Score: scores[i] + share})
	}
	slices.SortFunc(hits, func(a, b Hit) int { return compareHits(&a, &b) })
	return hits[:min(n, len(hits))]
}

func segmentOf(t testing.TB, an *analyzer.Analyzer, docs ...*Doc) *Segment {
	t.Helper()
	b := build.NewBuilder(an)
	for _, d := range docs {
		b.Add(d)
	}
	s, err := OpenSegment(b.Segment())
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var vocabulary = strings.Fields("rome lake answer answers café cafe travel boats boat anna bert 2023 東京都 京都 the of i walking walked")

func randomDoc(r *rand.Rand, id string, lsn uint64) *Doc {
	d := &Doc{ID: id, LSN: lsn, Time: int64(r.IntN(6))}
	if r.IntN(4) > 0 {
		d.Session = fmt.Sprintf("s%d", r.IntN(4))
	}
	some := func(n int) string {
		var s []string
		for range r.IntN(n) {
			s = append(s, vocabulary[int(r.ExpFloat64()*4)%len(vocabulary)])
		}
		return strings.Join(s, " ")
	}
	d.Texts = append(d.Texts, query.Text{Field: query.Content, Text: some(12)})
	if r.IntN(3) == 0 {
		d.Texts = append(d.Texts, query.Text{Field: query.Name, Text: []string{"Anna", "Bert", "Anna Rome"}[r.IntN(3)]})
	}
	if r.IntN(4) == 0 {
		d.Texts = append(d.Texts, query.Text{Field: query.Field(r.IntN(int(query.Fields))), Text: some(4)})
	}
	return d
}

// sideBySide is for Filter.Each.
func sideBySide(n int, do func(i int) error) error {
	var g errgroup.Group
	for i := range n {
		g.Go(func() error { return do(i) })
	}
	return g.Wait()
}

// TestSetIsTheModel changes sets at random, and compares each answer with the model: to the last bit,
// however the documents are distributed over segments.
func TestSetIsTheModel(t *testing.T) {
	first := proofs.Seed(t, 0)
	n := uint64(200)
	if proofs.Race() {
		n = 20
	}
	for seed := first; seed < first+n; seed++ {
		if !setIsTheModel(t, seed) {
			t.Fatalf("seed %d", seed)
		}
	}
}

func setIsTheModel(t *testing.T, seed uint64) bool {
	r := rand.New(rand.NewPCG(seed, 1))
	an := analyzer.New([]string{analyzer.English, analyzer.None}[r.IntN(2)])
	m := &model{docs: map[string]*Doc{}, an: an}
	set, next, lsn := NewSet(), uint64(1), uint64(1)
	var err error
	for range 1 + r.IntN(12) {
		switch r.IntN(4) {
		case 0, 1, 2: // some documents, new ones and newer ones, and some are removed
			batch := map[string]*Doc{}
			for range 1 + r.IntN(10) {
				lsn++
				id := fmt.Sprintf("d%02d", r.IntN(30))
				batch[id] = randomDoc(r, id, lsn)
			}
			var remove []string
			for range r.IntN(4) {
				id := fmt.Sprintf("d%02d", r.IntN(30))
				if batch[id] == nil {
					remove = append(remove, id)
					delete(m.docs, id)
				}
			}
			var docs []*Doc
			for id, d := range batch {
				docs = append(docs, d)
				m.docs[id] = d
			}
			set, err = set.With(next, segmentOf(t, an, docs...), remove)
			next++
		default:
			var ids []uint64
			for _, p := range set.Parts() {
				if r.IntN(2) == 0 {
					ids = append(ids, p.ID)
				}
			}
			var w *build.Writer
			var moved map[uint64][]int32
			if w, moved, err = set.Merge(t.Context(), ids); err == nil && len(ids) > 0 {
				var seg *Segment
				b := w.Bytes()
				if b != nil {
					seg, err = OpenSegment(b)
				}
				if err == nil {
					if b == nil {
						moved = map[uint64][]int32{}
						for _, id := range ids {
							moved[id] = nil
						}
					}
					set, err = set.Merged(next, seg, moved)
					next++
				}
			}
		}
		if err != nil {
			t.Error(err)
			return false
		}
		var parts []*Part
		for _, p := range set.Parts() {
			q, err := ReadState(p.ID, p.Seg, p.State())
			if err != nil {
				t.Error(err)
				return false
			}
			parts = append(parts, q)
		}
		again, err := SetOf(parts)
		if err != nil {
			t.Error(err)
			return false
		}
		for range 6 {
			text := ""
			for range 1 + r.IntN(4) {
				w := vocabulary[r.IntN(len(vocabulary))]
				switch r.IntN(12) {
				case 0:
					w = "-" + w
				case 1:
					w = "+" + w
				case 2:
					w = w[:1] + "*"
				case 3:
					w = "tag:" + w
				}
				if text += w + " "; r.IntN(4) == 0 {
					text += "OR "
				}
			}
			q := query.Parse(text, an)
			n := 1 + r.IntN(20)
			want := m.search(q, n)
			session := fmt.Sprintf("s%d", r.IntN(4))
			var within []Hit
			for _, h := range m.search(q, len(m.docs)) {
				if m.docs[h.ID].Session == session && len(within) < n {
					within = append(within, h)
				}
			}
			for name, s := range map[string]*Set{"set": set, "as it is read from a file": again} {
				for _, f := range []*string{nil, &session} {
					want := want
					if f != nil {
						want = within
					}
					got, err := s.Search(context.Background(), q, Filter{Session: f, Each: sideBySide}, n, 0, nil)
					if err != nil {
						t.Errorf("%s, %q: %v", name, text, err)
						return false
					}
					same := len(got) == len(want)
					for i := range want {
						same = same && got[i].ID == want[i].ID && got[i].Score == want[i].Score && got[i].LSN == want[i].LSN
					}
					if !same {
						t.Errorf("%s, session %v, %d documents in %v, %q:\ngot  %v\nwant %v", name, f != nil, len(m.docs), s.Parts(), text, got, want)
						return false
					}
				}
			}
		}
	}
	// A merge of everything is a build of everything.
	var ids []uint64
	for _, p := range set.Parts() {
		ids = append(ids, p.ID)
	}
	b, _, err := set.Merge(t.Context(), ids)
	if err != nil {
		t.Error(err)
		return false
	}
	var docs []*Doc
	for _, d := range m.docs {
		docs = append(docs, d)
	}
	built := build.NewBuilder(an)
	for _, d := range docs {
		built.Add(d)
	}
	if got, want := b.Bytes(), built.Segment(); !bytes.Equal(got, want) {
		t.Errorf("the merge has %d bytes, the build %d others", len(got), len(want))
		return false
	}
	return true
}

// TestSessionIsPartOfAll compares what is found in a session with what of it is found among all, in
// segments that are large enough for groups of postings to be passed over.
func TestSessionIsPartOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	an := analyzer.New(analyzer.English)
	set, lsn := NewSet(), uint64(1)
	sessions := map[string]string{}
	for part := range uint64(3) {
		batch := map[string]*Doc{}
		for range 3000 {
			lsn++
			id := fmt.Sprintf("d%05d", r.IntN(20000))
			d := randomDoc(r, id, lsn)
			d.Session, d.Time = fmt.Sprintf("s%02d", r.IntN(40)), int64(r.IntN(1000))
			batch[id], sessions[id] = d, d.Session
		}
		var err error
		if set, err = set.With(part+1, segmentOf(t, an, slices.Collect(maps.Values(batch))...), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"rome", "answer anna", "lake tag:rome -boat", "r* travel", "+café walking", "bert", "content:rome lake"} {
		q := query.Parse(text, an)
		all, err := set.Search(t.Context(), q, Filter{}, len(sessions), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 40 {
			session := fmt.Sprintf("s%02d", n)
			var want []Hit
			for _, h := range all {
				if sessions[h.ID] == session {
					want = append(want, h)
				}
			}
			got, err := set.Search(t.Context(), q, Filter{Session: &session}, len(sessions), 0, nil)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%q in %s: %v\ngot  %v\nwant %v", text, session, err, got, want)
			}
		}
	}
}

// TestRarest: of a text the rarest words are looked for, and one that no other document has comes last.
func TestRarest(t *testing.T) {
	an := analyzer.New(analyzer.None)
	var docs []*Doc
	for i := range 40 {
		text := "every"
		for k, w := range []string{"second", "fourth", "eighth"} {
			if i%(2<<k) == 0 {
				text += " " + w
			}
		}
		if i == 0 {
			text += " alone"
		}
		docs = append(docs, &Doc{ID: fmt.Sprintf("d%02d", i), LSN: uint64(i + 1), Texts: []query.Text{{Field: query.Content, Text: text}}})
	}
	set, err := NewSet().With(1, segmentOf(t, an, docs...), nil)
	if err != nil {
		t.Fatal(err)
	}
	q := query.Plain(`every -second "fourth" +eighth alone never`, an)
	for n, same := range []string{"every second fourth eighth alone", "eighth", "fourth eighth", "second fourth eighth", "every second fourth eighth", "every second fourth eighth alone"} {
		got, err := set.Search(t.Context(), q, Filter{Rarest: n}, 50, 0, nil)
		want, err2 := set.Search(t.Context(), query.Plain(same, an), Filter{}, 50, 0, nil)
		if err != nil || err2 != nil || !slices.Equal(got, want) {
			t.Errorf("the %d rarest: %v %v, got %v, want %v", n, err, err2, got, want)
		}
	}
}

// TestSearchAfterFailure: a search that ends early, wherever it is, leaves nothing behind that the next
// one, which uses its memory again, could find.
func TestSearchAfterFailure(t *testing.T) {
	an := analyzer.New(analyzer.English)
	r := rand.New(rand.NewPCG(3, 4))
	build := func(parts uint64) *Set {
		set := NewSet()
		for part := range parts {
			var docs []*Doc
			for i := range 60 {
				docs = append(docs, randomDoc(r, fmt.Sprintf("d%d-%02d", part, i), part*100+uint64(i)+1))
			}
			var err error
			if set, err = set.With(part+1, segmentOf(t, an, docs...), nil); err != nil {
				t.Fatal(err)
			}
		}
		return set
	}
	large, small := build(5), build(1)
	q := query.Parse("rome -boat answer r* +lake anna", an)
	want, err := small.Search(t.Context(), q, Filter{}, 50, 0, nil)
	if err != nil || len(want) == 0 {
		t.Fatal(want, err)
	}
	stop := errors.New("stop")
	for k := range 200 {
		calls := 0
		_, err := large.Search(t.Context(), q, Filter{Each: func(n int, do func(i int) error) error {
			for i := range n {
				if calls++; calls > k {
					return stop
				}
				if err := do(i); err != nil {
					return err
				}
			}
			return nil
		}}, 50, 0, nil)
		got, serr := small.Search(t.Context(), q, Filter{}, 50, 0, nil)
		if serr != nil || !slices.Equal(got, want) {
			t.Fatalf("behind a search that stopped at call %d: %v\ngot  %v\nwant %v", k, serr, got, want)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
	}
	t.Error("it never ended")
}

// TestLayoutThatFaulted: what was read of a file that is cut short is not taken for the whole.
func TestLayoutThatFaulted(t *testing.T) {
	set, err := NewSet().With(1, segmentOf(t, analyzer.New(analyzer.None), randomDoc(rand.New(rand.NewPCG(1, 1)), "d", 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := set.parts[0]
	b := p.Seg.b
	p.Seg.b = b[:headerBytes] // reading on panics, as reading a mapping does that was cut
	func() {
		defer func() { _ = recover() }()
		_, _ = p.layout()
		t.Error("it was read")
	}()
	p.Seg.b = b
	if _, err := p.layout(); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("behind a fault: %v", err)
	}
}
