package build

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
)

var seed = flag.Uint64("seed", 0, "the `seed` to replay; 0: another each time")

func random(t testing.TB) *rand.Rand {
	s := proofs.Seed(t, *seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay: go test ./internal/words/build -run '^%s$' -seed %d", t.Name(), s)
		}
	})
	return rand.New(rand.NewPCG(s, 1))
}

// plainly makes a segment by what a Builder is to do, with maps.
func plainly(an *analyzer.Analyzer, docs []Doc) []byte {
	docs = slices.Clone(docs)
	slices.SortFunc(docs, func(x, y Doc) int { return x.Compare(&y) })
	w := NewWriter(context.Background(), len(docs), an.Print(), Format)
	postings := map[string][]Posting{}
	for i, d := range docs {
		r := Row{ID: d.ID, Session: d.Session, LSN: d.LSN, Time: d.Time, Line: d.Line}
		terms := map[string]*[query.Fields]uint32{}
		for _, t := range d.Texts {
			an.Each([]byte(t.Text), func(term []byte, pair bool) {
				common := analyzer.Common(string(term))
				if t.Field == query.Content && !pair && !common {
					r.Length++
				}
				of := terms[string(term)]
				if of == nil {
					of = new([query.Fields]uint32)
					terms[string(term)] = of
				}
				if of[t.Field] == 0 || !analyzer.Once(term, pair) {
					of[t.Field] = min(of[t.Field]+1, MostTimes)
				}
			})
		}
		for term, times := range terms {
			p := Posting{Row: uint32(i)}
			if b := appendTimes(nil, 0, times); len(b) > 1 {
				p.TF = b[1:]
			}
			postings[term] = append(postings[term], p)
		}
		w.Row(&r)
	}
	for _, term := range slices.Sorted(maps.Keys(postings)) {
		w.Term([]byte(term), postings[term])
	}
	return w.Bytes()
}

var someWords = append(strings.Fields("walking walked walk walks the of news generously generous skis sky é e\u0301 cafe\u0301 café 東京都 京都 東 i\u0307 \u0301 Ελλάδα Москва Mосква 2023 ﬁ Ａｂ"),
	strings.Repeat("long", 16), strings.Repeat("long", 17), strings.Repeat("é", 33), strings.Repeat("walking", 10), "東"+strings.Repeat("京", 40), "")

func randomDocs(r *rand.Rand, n, letters int) []Doc {
	docs := make([]Doc, n)
	for i := range docs {
		d := &docs[i]
		*d = Doc{ID: fmt.Sprintf("%d-%d", r.IntN(10), i), LSN: uint64(i), Session: []string{"", "a", "b"}[r.IntN(3)], Time: int64(r.IntN(5))}
		for f := range query.Fields {
			var text []string
			for range r.IntN(1 + 20/(1+3*int(f))) {
				word := make([]byte, 1+r.IntN(letters))
				for j := range word {
					word[j] = byte('a' + r.IntN(26))
				}
				text = append(text, []string{string(word), someWords[r.IntN(len(someWords))]}[r.IntN(2)])
			}
			if len(text) > 0 {
				d.Texts = append(d.Texts, query.Text{Field: f, Text: strings.Join(text, " ")})
			}
		}
	}
	return docs
}

// A builder that knows words from the segments before makes the same of documents as plain maps.
func TestBuilder(t *testing.T) {
	for _, language := range []string{analyzer.English, "de", analyzer.None} {
		r := random(t)
		an := analyzer.New(language)
		b := NewBuilder(an)
		for round := range 40 {
			docs := randomDocs(r, 1+r.IntN(60), 1+r.IntN(6))
			want := plainly(analyzer.New(language), docs)
			analysed := r.IntN(3) == 0
			for _, d := range docs {
				if analysed || r.IntN(4) == 0 {
					d.Analyse(an)
				}
				b.Add(&d)
			}
			if b.Rows() != len(docs) || b.Size() <= 0 {
				t.Fatal(b.Rows(), b.Size())
			}
			if got := b.Segment(); !bytes.Equal(got, want) {
				t.Fatalf("%s, round %d: %d bytes, want other %d", language, round, len(got), len(want))
			}
			if b.Rows() != 0 || b.Size() != 0 || b.Segment() != nil {
				t.Fatal("not empty")
			}
		}
	}
}

// What a builder knows from one segment to the next is bounded.
func TestBuilderForgets(t *testing.T) {
	r := random(t)
	an := analyzer.New(analyzer.None)
	b := NewBuilder(an)
	text := make([]string, mostKept/4)
	for round := range 6 {
		for i := range text {
			text[i] = fmt.Sprintf("w%dx%d", round, i)
		}
		all := strings.Join(text, " ")
		docs := []Doc{{ID: "a", Texts: []query.Text{{Text: all}, {Text: all, Field: query.Name}}}, randomDocs(r, 1, 4)[0]}
		for i := range docs {
			b.Add(&docs[i])
		}
		if got := b.Segment(); !bytes.Equal(got, plainly(an, docs)) {
			t.Fatal(round)
		}
		if b.words.known > mostKept || max(cap(b.now), cap(b.times)) > mostHeld {
			t.Fatal(b.words.known, cap(b.now), cap(b.times))
		}
	}
}

// A vocabulary tells as many words apart as a map does.
func TestVocabulary(t *testing.T) {
	r := random(t)
	v, model := newVocabulary(), map[string]int32{}
	for range 300_000 {
		word := make([]byte, r.IntN(5))
		for j := range word {
			word[j] = byte('a' + r.IntN(20))
		}
		want, ok := model[string(word)]
		if !ok {
			want = int32(len(model))
			model[string(word)] = want
		}
		if n := v.number(word); n != want {
			t.Fatalf("%q is %d, want %d", word, n, want)
		}
	}
	if v.known != len(model) || 2*v.known > len(v.slots) {
		t.Fatal(v.known, len(model), len(v.slots))
	}
	for word, n := range model {
		if got := v.bytes(v.at(n)); string(got) != word {
			t.Fatalf("%q, want %q", got, word)
		}
	}
}

func BenchmarkBuilder(b *testing.B) {
	for _, letters := range []int{2, 6} {
		docs := randomDocs(rand.New(rand.NewPCG(1, 2)), 4096, letters)
		b.Run(fmt.Sprintf("letters=%d", letters), func(b *testing.B) {
			built := NewBuilder(analyzer.New(analyzer.English))
			for b.Loop() {
				for i := range docs {
					built.Add(&docs[i])
				}
				_, _ = built.Writer(b.Context())
			}
		})
	}
}
