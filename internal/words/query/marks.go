package query

import (
	"strings"

	"github.com/varve-db/varve/internal/text"
	"github.com/varve-db/varve/internal/words/analyzer"
)

// Mark is a word of a query found in a text: its byte offsets, and its index in Query.All.
type Mark struct {
	From, To int
	Word     int
}

// mostMarks is the maximum number of marks in a text.
const mostMarks = 1 << 12

// Marks returns the places in text s of field f that have words of the query, in order; at most mostMarks. Adjoining
// pairs of characters of scripts without spaces that have a character in common become one mark.
func (q *Query) Marks(f Field, s string, an *analyzer.Analyzer) (list []Mark) {
	exact, prefixes := map[string]int{}, []int{}
	for i, w := range q.All {
		switch {
		case w.Not || w.Quiet || w.Fields&Of(f) == 0:
		case w.Prefix:
			prefixes = append(prefixes, i)
		default:
			exact[w.Term] = i
		}
	}
	if len(exact) == 0 && len(prefixes) == 0 {
		return nil
	}
	b := []byte(s)
	if an.Version() > analyzer.FirstTerms {
		return q.marks(b, exact, prefixes, an)
	}
	of := func(from, to int, pairs bool) (word int) {
		word = -1
		an.Each(b[from:to], func(term []byte, pair bool) {
			if pairs && !pair || word >= 0 {
				return
			}
			if i, ok := exact[string(term)]; ok {
				word = i
				return
			}
			for _, i := range prefixes {
				if strings.HasPrefix(string(term), q.All[i].Term) {
					word = i
				}
			}
		})
		return word
	}
	before, beforeTo := -1, -1 // the previous character, if it adjoins the current one
	text.Spans(b, func(from, to int, alone bool) bool {
		m := Mark{from, to, of(from, to, false)}
		if alone && beforeTo == from && m.Word < 0 {
			if m.Word = of(before, to, true); m.Word >= 0 {
				m.From = before
			}
		}
		if before = -1; alone {
			before = from
		}
		beforeTo = to
		if !alone {
			beforeTo = -1
		}
		if n := len(list); m.Word >= 0 && n > 0 && list[n-1].To > m.From { // pairs with a character in common
			list[n-1].To = m.To
		} else if m.Word >= 0 {
			list = append(list, m)
		}
		return len(list) < mostMarks
	})
	return list
}

// marks is like Marks, for version 2 and later of the terms.
func (q *Query) marks(b []byte, exact map[string]int, prefixes []int, an *analyzer.Analyzer) (list []Mark) {
	an.Tokens(b, func(t analyzer.Token) {
		if len(list) >= mostMarks {
			return
		}
		m := Mark{t.From, t.To, -1}
		if i, ok := exact[string(t.Term)]; ok {
			m.Word = i
		} else {
			for _, i := range prefixes {
				if w := &q.All[i]; strings.HasPrefix(string(t.Term), w.Term) ||
					w.Common && strings.HasPrefix(string(t.Term), analyzer.AsCommon(w.Term)) {
					m.Word = i
				}
			}
		}
		n := len(list)
		switch {
		case m.Word < 0:
		case n > 0 && list[n-1].To > m.From: // another form of the same words, or pairs with a character in common
			last := &list[n-1]
			last.From, last.To = min(last.From, m.From), max(last.To, m.To)
		default:
			list = append(list, m)
		}
	})
	return list
}
