package query

import (
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/words/analyzer"
)

// texts are the texts of a document, with their terms computed on demand.
type texts struct {
	list  []Text
	an    *analyzer.Analyzer
	terms [2][][]string     // results of sequence for each text, without symbols and with them; nil: not computed
	words []map[string]bool // all terms that an index would have for each text; nil: not computed
}

// Holds reports whether a document's texts satisfy the part of the query that the index cannot decide. The texts must
// have every phrase of the query and none of the excluded phrases. Of each group with phrases, they must have at least
// one member.
func (q *Query) Holds(list []Text, an *analyzer.Analyzer) bool {
	t := newTexts(list, an)
	for i := range q.phrases {
		if p := &q.phrases[i]; t.hasPhrase(p) == p.not {
			return false
		}
	}
	for _, g := range q.Either {
		if g.phrases() && !slices.ContainsFunc(g, func(m Member) bool { return q.member(&m, t) }) {
			return false
		}
	}
	return true
}

func newTexts(list []Text, an *analyzer.Analyzer) *texts {
	return &texts{list, an, [2][][]string{make([][]string, len(list)), make([][]string, len(list))},
		make([]map[string]bool, len(list))}
}

// Excludes reports whether the query has excluded phrases, that is, phrases that a document must not have.
func (q *Query) Excludes() bool {
	return slices.ContainsFunc(q.phrases, func(p phrase) bool { return p.not })
}

// Lends reports whether a document can add to the scores of its neighbours in the session. That is so if its content
// has a word of the query and its texts have none of the excluded phrases.
func (q *Query) Lends(list []Text, an *analyzer.Analyzer) bool {
	t := newTexts(list, an)
	for i := range q.phrases {
		if p := &q.phrases[i]; p.not && t.hasPhrase(p) {
			return false
		}
	}
	return slices.ContainsFunc(q.All, func(w Word) bool {
		w.Fields &= Of(Content)
		return !w.Not && w.Fields != 0 && t.hasWord(&w)
	})
}

func (q *Query) member(m *Member, t *texts) bool {
	if m.phrase != nil {
		return t.hasPhrase(m.phrase)
	}
	for _, i := range m.Words {
		if !t.hasWord(&q.All[i]) {
			return false
		}
	}
	return true
}

func (t *texts) hasPhrase(p *phrase) bool {
	for i, of := range t.list {
		if p.fields&Of(of.Field) == 0 {
			continue
		}
		if p.literal != "" {
			if strings.Contains(of.Text, p.literal) {
				return true
			}
			continue
		}
		terms := t.terms[0]
		if p.symbols {
			terms = t.terms[1]
		}
		if terms[i] == nil {
			terms[i] = sequence(of.Text, t.an, p.symbols)
		}
		if contains(terms[i], p.terms) {
			return true
		}
	}
	return false
}

func (t *texts) hasWord(w *Word) bool {
	for i, of := range t.list {
		if w.Fields&Of(of.Field) == 0 {
			continue
		}
		if t.words[i] == nil {
			t.words[i] = map[string]bool{}
			t.an.Each([]byte(of.Text), func(term []byte, _ bool) { t.words[i][string(term)] = true })
		}
		if t.words[i][w.Term] {
			return true
		}
		if !w.Prefix {
			continue
		}
		for term := range t.words[i] {
			if strings.HasPrefix(term, w.Term) || w.Common && strings.HasPrefix(term, analyzer.AsCommon(w.Term)) {
				return true
			}
		}
	}
	return false
}

// contains reports whether part is a contiguous sublist of list, in linear time (Knuth, Morris, Pratt).
func contains(list, part []string) bool {
	back := make([]int, len(part)+1) // for each matched length, the next shorter match to try after a mismatch
	for i, n := 1, 0; i < len(part); i++ {
		for n > 0 && part[i] != part[n] {
			n = back[n]
		}
		if part[i] == part[n] {
			n++
		}
		back[i+1] = n
	}
	n := 0
	for _, s := range list {
		for n > 0 && (n == len(part) || s != part[n]) {
			n = back[n]
		}
		if n < len(part) && s == part[n] {
			n++
		}
		if n == len(part) {
			return true
		}
	}
	return len(part) == 0
}
