package search

import (
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
)

// Explanation is what the score of a hit is made of.
type Explanation struct {
	// By words the score is Own, of the memory and its neighbours, plus Session, three tenths of the best
	// three of its session. Both are BM25F, also where a vector was given as well.
	Own, Session float64
	Words        []WordShare // in the order of the query, those that the memory or a neighbour has
	Similarity   float64     // by vector: the cosine, or 1/(1+d²)
}

// WordShare is what one word of a query adds to Explanation.Own.
type WordShare struct {
	Word   string // as it is looked for: a stem
	Score  float64
	Near   float64  // how much of Score the neighbours in the session give, from 0 to 1
	Fields []string // where the memory itself has it
}

// asked is a query as it was looked for.
type asked struct {
	query    *query.Query
	analyzer *analyzer.Analyzer
}

// explained is the explanation of one hit; the fields are those of the texts.
func (a *asked) explained(h *found, texts []query.Text) *Explanation {
	e := &Explanation{Own: h.parts.Own, Session: h.parts.Session, Similarity: h.similarity}
	if a.query == nil || len(h.shares) == 0 {
		return e
	}
	fields := make([][]string, len(a.query.All))
	for _, t := range texts {
		seen := map[int]bool{}
		for _, m := range a.query.Marks(t.Field, t.Text, a.analyzer) {
			if name := t.Field.String(); !seen[m.Word] && (len(fields[m.Word]) == 0 || fields[m.Word][len(fields[m.Word])-1] != name) {
				fields[m.Word] = append(fields[m.Word], name)
			}
			seen[m.Word] = true
		}
	}
	for _, s := range h.shares {
		e.Words = append(e.Words, WordShare{a.query.All[s.Word].Term, s.Score, s.Near, fields[s.Word]})
	}
	return e
}

// keep takes what a search by words says of its hits.
func (h *found) keep(hit *words.Hit, shares []words.Share) { h.parts, h.shares = hit.Parts, shares }
