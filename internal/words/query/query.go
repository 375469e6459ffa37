package query

import (
	"fmt"
	"slices"
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
	All     []Word  // the words, each once, in order
	Either  []Group // documents without one of each are not found
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
	Either bool     // it is in a group
}

// phrase is words that stand one after the other.
type phrase struct {
	terms  []string
	fields FieldSet
	not    bool
}

// Group is what OR stands between.
type Group []Member

// Member is one of a group: a document has it that has all its words, one after the other where it is a
// phrase.
type Member struct {
	Words  []int // of All, each once
	phrase *phrase
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

// Size is how much the query asks for: words, phrases and other groups of words, those that exclude too.
func (q *Query) Size() int {
	n := len(q.All) + len(q.phrases)
	for _, g := range q.Either {
		for i := range g {
			if len(g[i].Words) > 1 {
				n++
			}
		}
	}
	return n
}

// Phrases reports whether documents have to be read to know that their words stand in order.
func (q *Query) Phrases() bool {
	return len(q.phrases) > 0 || slices.ContainsFunc(q.Either, Group.phrases)
}

func (g Group) phrases() bool {
	return slices.ContainsFunc(g, func(m Member) bool { return m.phrase != nil })
}

// Parse reads a query:
//
//	rome trip        documents with any of the words, those with more and rarer ones first
//	"to the lake"    these words, one after the other
//	rom*             words that begin so
//	+rome            documents without it are not found
//	-rome            documents with it are not found; also -"to the lake", -tag:old
//	tag:travel       the word in a field: content, title, tag, category, key, speaker, caption, date;
//	                 also tag:"deep learning". Documents without it are not found
//	tag:a OR tag:b   documents with neither are not found. Between words that need not be there anyway, and
//	                 beside what has no words, OR says nothing; what excludes does so beside it too
//
// A query never fails to parse: anything else is treated as words. Punctuation separates words.
func Parse(s string, an *analyzer.Analyzer) *Query {
	q := &Query{known: map[Word]int{}}
	var chain []item // what OR stands between, mostly one
	joined := false
	for _, it := range split(s) {
		if it.or {
			joined = true
			continue
		}
		if !joined {
			q.chain(chain, an)
			chain = nil
		}
		chain, joined = append(chain, it), false
	}
	q.chain(chain, an)
	return q
}

// chain adds what OR stands between.
func (q *Query) chain(items []item, an *analyzer.Analyzer) {
	if len(items) == 1 {
		q.item(&items[0], an)
		return
	}
	var either []item
	required, known := false, true
	for _, it := range items {
		if it.not {
			q.item(&it, an)
			continue
		}
		either = append(either, it)
		required = required || it.must || it.phrase
		known = known && len(termsOf(it.text, an)) > 0 // a document may have what no index has
	}
	if len(either) == 1 {
		q.item(&either[0], an)
		return
	}
	var g Group
	has := map[string]bool{}
	for _, it := range either {
		m := q.memberOf(&it, an, required && known)
		if name := fmt.Sprint(m.Words, m.phrase); !has[name] {
			has[name] = true
			g = append(g, m)
		}
	}
	if required && known {
		q.Either = append(q.Either, g)
	}
}

// memberOf adds the words of an item.
func (q *Query) memberOf(it *item, an *analyzer.Analyzer, inGroup bool) (m Member) {
	terms := termsOf(it.text, an)
	if it.phrase && len(terms) > 1 {
		m.phrase = &phrase{terms: terms, fields: it.fields}
	}
	m.Words = q.addAll(it, terms, Word{Either: inGroup})
	slices.Sort(m.Words)
	m.Words = slices.Compact(m.Words)
	return m
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

// begins reports whether a word or a phrase stands here.
func begins(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '"' || unicode.IsLetter(r) || unicode.IsNumber(r)
}

func (q *Query) item(it *item, an *analyzer.Analyzer) {
	terms := termsOf(it.text, an)
	must := it.must || it.phrase
	if it.phrase && len(terms) > 1 {
		q.phrases = append(q.phrases, phrase{terms: terms, fields: it.fields, not: it.not})
		if it.not {
			return // the words alone exclude nothing
		}
	}
	q.addAll(it, terms, Word{Not: it.not, Must: must && !it.not})
}

// addAll adds the terms of an item as words like w, and says which of All they are.
func (q *Query) addAll(it *item, terms []string, w Word) (list []int) {
	for i, term := range terms {
		w.Term, w.Fields, w.Prefix = term, it.fields, it.prefix && i == len(terms)-1
		list = append(list, q.add(w))
	}
	return list
}

// add says which one of All it is.
func (q *Query) add(w Word) int {
	key := w
	key.Must, key.Either = false, false
	i, ok := q.known[key]
	if !ok {
		i = len(q.All)
		q.known[key], q.All = i, append(q.All, w)
	}
	q.All[i].Must, q.All[i].Either = q.All[i].Must || w.Must, q.All[i].Either || w.Either
	return i
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
