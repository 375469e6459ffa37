package query

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-db/varve/internal/words/analyzer"
)

// MostWords is how many different words and phrases a query may have, those that exclude too.
const MostWords = 1024

// mostField is how many bytes before a colon may be the name of a field.
const mostField = 16

// Query is what is looked for.
type Query struct {
	All     []Word // the words, each once, in order
	known   map[Word]int
	phrases []phrase
}

// Word is one of a query's words.
type Word struct {
	Term   string
	Fields FieldSet // where it must stand
	Prefix bool     // and all that begin with it
	Not    bool     // documents with it are not found
	Must   bool     // documents without it are not found
}

// phrase is words that stand one after the other.
type phrase struct {
	terms  []string
	fields FieldSet
	not    bool
}

// Words is how many different words are looked for.
func (q *Query) Words() int {
	n := 0
	for _, w := range q.All {
		if !w.Not {
			n++
		}
	}
	return n
}

// Size is how much the query asks for: words and phrases, those that exclude too.
func (q *Query) Size() int { return len(q.All) + len(q.phrases) }

// Phrases says whether documents have to be read to know that their words stand in order.
func (q *Query) Phrases() bool { return len(q.phrases) > 0 }

// Parse reads a query:
//
//	rome trip        documents with any of the words, those with more and rarer ones first
//	"to the lake"    these words, one after the other
//	rom*             words that begin so
//	+rome            documents without it are not found
//	-rome            documents with it are not found; also -"to the lake", -tag:old
//	tag:travel       the word in a field: content, title, tag, category, key, speaker, caption, date;
//	                 also tag:"deep learning". Documents without it are not found
//	tag:a OR tag:b   what stands on both sides of OR need not be there
//
// No text is wrong: what is none of these is words. Punctuation separates words.
func Parse(s string, an *analyzer.Analyzer) *Query {
	q := &Query{known: map[Word]int{}}
	items := split(s)
	for i, it := range items {
		if it.or {
			continue
		}
		optional := i > 0 && items[i-1].or || i+1 < len(items) && items[i+1].or
		q.item(&it, an, optional)
	}
	return q
}

// item is a piece of a query.
type item struct {
	text   string
	fields FieldSet
	phrase bool
	prefix bool
	must   bool
	not    bool
	or     bool
}

// split takes a query apart.
func split(s string) (items []item) {
	for {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		if s == "" {
			return items
		}
		it := item{fields: AllFields}
		rest := s
		if c := rest[0]; (c == '-' || c == '+') && len(rest) > 1 && begins(rest[1:]) {
			it.not, it.must = c == '-', c == '+'
			rest = rest[1:]
		}
		if n := strings.IndexByte(rest[:min(len(rest), mostField+1)], ':'); n >= 0 && n+1 < len(rest) && begins(rest[n+1:]) {
			if f, known := FieldNamed(strings.ToLower(rest[:n])); known {
				it.fields, it.must = Of(f), !it.not
				rest = rest[n+1:]
			}
		}
		if rest[0] == '"' {
			if end := strings.IndexByte(rest[1:], '"'); end >= 0 {
				it.text, it.phrase = rest[1:1+end], true
				s = rest[end+2:]
				items = append(items, it)
				continue
			}
		}
		end := strings.IndexFunc(rest, unicode.IsSpace)
		if end < 0 {
			end = len(rest)
		}
		it.text, s = rest[:end], rest[end:]
		it.or = it.text == "OR" && len(rest) == len(it.text)+len(s) && !it.not && !it.must
		if n := len(it.text); n > 1 && it.text[n-1] == '*' {
			it.text, it.prefix = it.text[:n-1], true
		}
		items = append(items, it)
	}
}

// mostPlain is how many different words of a plain text are looked at.
const mostPlain = 1 << 14

// Plain looks for the words of a text, whatever else is in it; of a long text for the first ones.
func Plain(s string, an *analyzer.Analyzer) *Query {
	q := &Query{known: map[Word]int{}}
	for _, term := range termsOf(s, an) {
		if q.add(Word{Term: term, Fields: AllFields}); len(q.All) == mostPlain {
			break
		}
	}
	return q
}

// begins says whether a word or a phrase stands here.
func begins(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '"' || unicode.IsLetter(r) || unicode.IsNumber(r)
}

func (q *Query) item(it *item, an *analyzer.Analyzer, optional bool) {
	terms := termsOf(it.text, an)
	must := (it.must || it.phrase) && !optional
	if it.phrase && len(terms) > 1 {
		if !optional {
			q.phrases = append(q.phrases, phrase{terms: terms, fields: it.fields, not: it.not})
		}
		if it.not {
			return // the words alone exclude nothing
		}
	}
	for i, term := range terms {
		q.add(Word{term, it.fields, it.prefix && i == len(terms)-1, it.not, must && !it.not})
	}
}

func (q *Query) add(w Word) {
	key := w
	key.Must = false
	if i, ok := q.known[key]; ok {
		q.All[i].Must = q.All[i].Must || w.Must
		return
	}
	q.known[key] = len(q.All)
	q.All = append(q.All, w)
}

// termsOf are the terms of a text of a query, in order: of adjoining characters of scripts without
// spaces the pairs only.
func termsOf(s string, an *analyzer.Analyzer) (terms []string) {
	var pairs []bool
	an.Each([]byte(s), func(term []byte, pair bool) {
		if pair { // behind its second character; the first one is before that, where it has no pair itself
			terms, pairs = terms[:len(terms)-1], pairs[:len(pairs)-1]
			if n := len(pairs); n > 0 && !pairs[n-1] {
				terms, pairs = terms[:n-1], pairs[:n-1]
			}
		}
		terms, pairs = append(terms, string(term)), append(pairs, pair)
	})
	return terms
}

// Holds says whether the texts of a document have the query's phrases. Other words are not asked.
func (q *Query) Holds(texts []Text, an *analyzer.Analyzer) bool {
	terms := make([][]string, len(texts)) // of each that is asked for
	for i := range q.phrases {
		p := &q.phrases[i]
		has := false
		for j, t := range texts {
			if p.fields&Of(t.Field) == 0 {
				continue
			}
			if terms[j] == nil {
				terms[j] = termsOf(t.Text, an)
			}
			if has = contains(terms[j], p.terms); has {
				break
			}
		}
		if has == p.not {
			return false
		}
	}
	return true
}

// contains says whether a part stands in a list, in time of the sum of their lengths (Knuth, Morris, Pratt).
func contains(list, part []string) bool {
	back := make([]int, len(part)+1) // of what fits so far, how much fits where that does not go on
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
