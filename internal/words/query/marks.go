package query

import (
	"strings"

	"github.com/varve-db/varve/internal/text"
	"github.com/varve-db/varve/internal/words/analyzer"
)

// Mark is where a word of a query stands in a text, in bytes, and which one of Query.All it is.
type Mark struct {
	From, To int
	Word     int
}

// mostMarks bounds what is looked at of a text.
const mostMarks = 1 << 12

// Marks are the places in a text of a field of words that are looked for, in order; of a long text the first
// ones. What characters without spaces make a word is marked as one.
func (q *Query) Marks(f Field, s string, an *analyzer.Analyzer) (list []Mark) {
	exact, prefixes := map[string]int{}, []int{}
	for i, w := range q.All {
		switch {
		case w.Not || w.Fields&Of(f) == 0:
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
	before, beforeTo := -1, -1 // the character before, where this one adjoins it
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
		if n := len(list); m.Word >= 0 && n > 0 && list[n-1].To > m.From { // pairs that have a character in common
			list[n-1].To = m.To
		} else if m.Word >= 0 {
			list = append(list, m)
		}
		return len(list) < mostMarks
	})
	return list
}
