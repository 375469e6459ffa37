package query

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-db/varve/internal/text"
	"github.com/varve-db/varve/internal/words/analyzer"
)

// MostWords is how many different words and phrases a query may have, those that exclude too.
const MostWords = 1024

// mostField is how many bytes before a colon may be the name of a field.
const mostField = 16

// Query is what is looked for.
type Query struct {
	All     []Word   // the words, each once, in order
	Either  []Group  // documents without one of each are not found
	Notes   []string // what is taken otherwise than it is written
	known   map[Word]int
	phrases []phrase
	common  []Word // what counts where there are no other words
}

// Word is one of a query's words.
type Word struct {
	Term   string
	Fields FieldSet // where it must stand
	Prefix bool     // and all that begin with it
	Common bool     // with Prefix: also words that are in every text
	Not    bool     // documents with it are not found
	Must   bool     // documents without it are not found
	Either bool     // it is in a group
	Quiet  bool     // it is a condition, and adds nothing to scores
}

// phrase is words that stand one after the other, or, where it has none, characters.
type phrase struct {
	terms   []string
	literal string
	symbols bool // terms has some: else those of a text do not count
	fields  FieldSet
	not     bool
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
//	-rome            documents with it are not found; also -"to the lake", -tag:old, and -user-id, which is the phrase
//	tag:travel       the word in a field: content, title, tag, category, key, speaker, caption, date;
//	                 also tag:"deep learning". Documents without it are not found
//	tag:a OR tag:b   documents with neither are not found. Between words that need not be there anyway, and
//	                 beside what has no words, OR says nothing; what excludes does so beside it too
//
// A condition holds for words that are in every text too, which do not count otherwise, except where a query has no
// others. A phrase without a word is looked for as it is written.
//
// A query never fails to parse: anything else is treated as words. Punctuation separates words.
func Parse(s string, an *analyzer.Analyzer) *Query {
	q, _ := ParseIn(s, an, nil)
	return q
}

// Has reports whether a document has a word in one of its fields.
type Has func(w *Word) (bool, error)

// ParseIn is Parse for an index. What looks like a field, in which no document has the words behind the colon, is
// words: key:value, or a title in a store without titles. A note says so. has may be nil: then each document has all.
func ParseIn(s string, an *analyzer.Analyzer, has Has) (*Query, error) {
	q := &Query{known: map[Word]int{}}
	var chain []item // what OR stands between, mostly one
	joined := false
	add := func() error {
		list, err := q.settled(chain, an, has)
		if err == nil {
			q.chain(list, an)
		}
		chain = nil
		return err
	}
	for _, it := range split(s) {
		if it.or {
			joined = true
			continue
		}
		if !joined {
			if err := add(); err != nil {
				return nil, err
			}
		}
		chain, joined = append(chain, it), false
	}
	if err := add(); err != nil {
		return nil, err
	}
	q.counted()
	return q, nil
}

// counted has words that are in every text count where there are no others.
func (q *Query) counted() {
	if slices.ContainsFunc(q.All, func(w Word) bool { return !w.Not && !w.Quiet }) {
		return
	}
	if q.Words() == 0 && len(q.phrases) == 0 {
		for _, w := range q.common {
			q.add(w)
		}
	}
}

// settled has words in the place of items whose field is none: of several with OR between, unless another one is a
// condition that can hold.
func (q *Query) settled(items []item, an *analyzer.Analyzer, has Has) ([]item, error) {
	if has == nil {
		return items, nil
	}
	none, holds := make([]bool, len(items)), false
	for i := range items {
		it := &items[i]
		if it.field != "" && !it.not {
			ok, err := it.found(an, has)
			if err != nil {
				return nil, err
			}
			none[i] = !ok
		}
		holds = holds || !it.not && (it.must || it.phrase) && !none[i]
	}
	if holds {
		return items, nil
	}
	var out []item
	for i, it := range items {
		if !none[i] {
			out = append(out, it)
			continue
		}
		written := it.text
		if it.phrase {
			written = `"` + written + `"`
		}
		if it.prefix {
			written += "*"
		}
		q.note(fmt.Sprintf("no memory has %s in the field %s: %s:%s is taken as words", written, it.field, it.name, written))
		it.fields, it.must, it.phrase = AllFields, false, false
		it.text = it.name + " " + it.text
		out = append(out, it)
	}
	return out, nil
}

func (q *Query) note(s string) {
	const most = 8
	if len(q.Notes) < most && !slices.Contains(q.Notes, s) {
		q.Notes = append(q.Notes, s)
	}
}

// found reports whether a document has the words of an item in its field.
func (it *item) found(an *analyzer.Analyzer, has Has) (bool, error) {
	for _, w := range it.words(an, true) {
		if analyzer.Common(w.Term) && !an.Indexed() {
			continue
		}
		if ok, err := has(&w); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
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
		known = known && len(indexed(it.words(an, true), an)) > 0 // a document may have what no index has
	}
	if len(either) == 1 {
		q.item(&either[0], an)
		return
	}
	if !required || !known {
		for i := range either {
			either[i].must, either[i].phrase = false, false
			q.item(&either[i], an)
		}
		return
	}
	var g Group
	has := map[string]bool{}
	for _, it := range either {
		m := q.memberOf(&it, an)
		if name := fmt.Sprint(m.Words, m.phrase); !has[name] {
			has[name] = true
			g = append(g, m)
		}
	}
	q.Either = append(q.Either, g)
}

// memberOf adds the words of an item.
func (q *Query) memberOf(it *item, an *analyzer.Analyzer) (m Member) {
	words := it.words(an, true)
	known := indexed(words, an)
	if it.phrase && len(words) > 1 || len(known) < len(words) {
		m.phrase = &phrase{fields: it.fields}
		m.phrase.terms, m.phrase.symbols = seqOf(it.text, an)
	}
	for _, w := range quieted(known) {
		w.Either = true
		m.Words = append(m.Words, q.add(w))
	}
	slices.Sort(m.Words)
	m.Words = slices.Compact(m.Words)
	return m
}

// item is a piece of a query.
type item struct {
	text   string
	field  string // the one that is named, in words; "": none
	name   string // as it is written
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
				it.fields, it.must, it.field, it.name = Of(f), !it.not, f.String(), rest[:n]
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
	for _, t := range termsOf(s, an) {
		if analyzer.Common(t.text) {
			continue
		}
		if q.add(Word{Term: t.text, Fields: AllFields}); len(q.All) == mostPlain {
			break
		}
	}
	return q
}

// begins reports whether a word or a phrase stands here.
func begins(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '"' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || text.Emoji(r)
}

// words are those of an item, for a condition or not.
func (it *item) words(an *analyzer.Analyzer, condition bool) (list []Word) {
	terms := termsOf(it.text, an)
	for i, t := range terms {
		w := Word{Term: t.text, Fields: it.fields, Prefix: it.prefix && i == len(terms)-1}
		if w.Prefix && analyzer.Common(t.text) {
			w.Term = analyzer.Shown(t.text)
		}
		if w.Common = w.Prefix && condition && an.Indexed(); !condition || !t.beside {
			list = append(list, w)
		}
	}
	return list
}

// indexed are those of words of a condition that an index knows.
func indexed(words []Word, an *analyzer.Analyzer) []Word {
	if an.Indexed() {
		return words
	}
	return slices.DeleteFunc(slices.Clone(words), func(w Word) bool { return analyzer.Common(w.Term) })
}

// quieted has those that are in every text Quiet, beside others.
func quieted(words []Word) []Word {
	common := func(w Word) bool { return analyzer.Common(w.Term) }
	if !slices.ContainsFunc(words, func(w Word) bool { return !common(w) }) {
		return words
	}
	for i := range words {
		words[i].Quiet = common(words[i])
	}
	return words
}

// item adds a piece of the query. A condition is one of the words that an index has, or is looked for in the documents.
func (q *Query) item(it *item, an *analyzer.Analyzer) {
	condition := it.must || it.phrase || it.not
	words := it.words(an, condition)
	if !condition {
		for _, w := range words {
			if analyzer.Common(w.Term) {
				q.common = append(q.common, w)
				continue
			}
			q.add(w)
		}
		return
	}
	p := phrase{fields: it.fields, not: it.not}
	known := indexed(words, an)
	switch {
	case len(words) == 0:
		if p.literal = strings.TrimSpace(it.text); p.literal != "" {
			q.phrases = append(q.phrases, p)
		}
		return
	case len(words) == 1 && len(known) == 1, it.prefix && it.not, !it.phrase && !it.not && len(known) == len(words):
	default:
		p.terms, p.symbols = seqOf(it.text, an)
		q.phrases = append(q.phrases, p)
		if it.not {
			return // the words alone exclude nothing
		}
	}
	if !it.not {
		known = quieted(known)
	}
	for _, w := range known {
		w.Not, w.Must = it.not, !it.not
		q.add(w)
	}
}

// add says which one of All it is.
func (q *Query) add(w Word) int {
	key := w
	key.Must, key.Either, key.Quiet = false, false, false
	i, ok := q.known[key]
	if !ok {
		i = len(q.All)
		q.known[key], q.All = i, append(q.All, w)
	}
	is := &q.All[i]
	is.Must, is.Either, is.Quiet = is.Must || w.Must, is.Either || w.Either, is.Quiet && w.Quiet
	return i
}

// term is one of a text of a query.
type term struct {
	text   string
	beside bool // beside another one: no condition is about it
}

// termsOf are the terms of a text of a query, in order: of adjoining characters of scripts without
// spaces the pairs only, and of names with signs the whole.
func termsOf(s string, an *analyzer.Analyzer) (terms []term) {
	if one, ok := an.Single(s); ok {
		return []term{{text: one}}
	}
	var base []int // of the words: where in terms
	var kinds []analyzer.Kind
	drop := func(n int) {
		if n = min(n, len(base)); n > 0 {
			at := base[len(base)-n]
			base, kinds, terms = base[:len(base)-n], kinds[:len(kinds)-n], terms[:at]
		}
	}
	an.Tokens([]byte(s), func(t analyzer.Token) {
		is := term{text: string(t.Term)}
		switch t.Kind {
		case analyzer.Pair: // behind its second character; the first one is before that, where it has no pair itself
			drop(1)
			if n := len(kinds); n > 0 && kinds[n-1] == analyzer.Char {
				drop(1)
			}
		case analyzer.Whole, analyzer.Number:
			drop(t.Words)
		case analyzer.Joined:
			for _, i := range base[max(len(base)-t.Words, 0):] {
				terms[i].beside = true
			}
		case analyzer.Part:
			is.beside = true
			terms = append(terms, is)
			return
		case analyzer.Shorter:
			return
		}
		base, kinds, terms = append(base, len(terms)), append(kinds, t.Kind), append(terms, is)
	})
	return terms
}

// seqOf are the words of a text as they follow one another, with symbols if it has some.
func seqOf(s string, an *analyzer.Analyzer) (terms []string, symbols bool) {
	symbols = strings.ContainsFunc(s, text.Emoji)
	return sequence(s, an, symbols), symbols
}

func sequence(s string, an *analyzer.Analyzer, symbols bool) (terms []string) {
	var kinds []analyzer.Kind
	drop := func(n int) {
		n = min(n, len(terms))
		terms, kinds = terms[:len(terms)-n], kinds[:len(kinds)-n]
	}
	an.Tokens([]byte(s), func(t analyzer.Token) {
		switch t.Kind {
		case analyzer.Pair:
			drop(1)
			if n := len(kinds); n > 0 && kinds[n-1] == analyzer.Char {
				drop(1)
			}
		case analyzer.Whole:
			drop(t.Words)
		case analyzer.Number, analyzer.Joined, analyzer.Part, analyzer.Shorter:
			return
		case analyzer.Symbol:
			if !symbols {
				return
			}
		}
		terms, kinds = append(terms, string(t.Term)), append(kinds, t.Kind)
	})
	return terms
}
