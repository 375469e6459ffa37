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

// MostWords is the maximum number of different words and phrases in a query, including excluded ones.
const MostWords = 1024

// mostField is the maximum length of a field name before a colon, in bytes.
const mostField = 16

// Query is a parsed query.
type Query struct {
	All     []Word   // the different words, in the order of the query
	Either  []Group  // a document must satisfy at least one member of each group
	Notes   []string // messages about parts of the query that are not treated as they were written
	known   map[Word]int
	phrases []phrase
	common  []Word // stop words of the query, which are used if it has no other words
}

// Word is a word of a query.
type Word struct {
	Term   string
	Fields FieldSet // fields in which the word is searched
	Prefix bool     // the word matches every word that begins with Term
	Common bool     // with Prefix: the word also matches stop words
	Not    bool     // excluded: documents with the word are not found
	Must   bool     // required: documents without the word are not found
	Either bool     // the word belongs to a group
	Quiet  bool     // the word is a condition that adds nothing to scores
}

// phrase is a sequence of words, or, if it has no words, literal text.
type phrase struct {
	terms   []string
	literal string
	symbols bool // the sequence includes symbols; otherwise symbols in the text are skipped
	fields  FieldSet
	not     bool
}

// Group is a list of alternatives joined by OR.
type Group []Member

// Member is an alternative of a group. A document satisfies the alternative if it has all words of the alternative. If
// phrase is set, the words must follow one another.
type Member struct {
	Words  []int // indexes of the member's words in Query.All, without duplicates
	phrase *phrase
}

// Words returns the number of different words that are searched, without the excluded ones.
func (q *Query) Words() int {
	n := 0
	for _, w := range q.All {
		if !w.Not {
			n++
		}
	}
	return n
}

// Size returns the number that is compared with MostWords: the words and phrases of the query, including excluded
// ones, and the members of groups that have several words.
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

// Phrases reports whether documents must be read to decide whether they match, because the query has phrases.
func (q *Query) Phrases() bool {
	return len(q.phrases) > 0 || slices.ContainsFunc(q.Either, Group.phrases)
}

func (g Group) phrases() bool {
	return slices.ContainsFunc(g, func(m Member) bool { return m.phrase != nil })
}

// Parse parses a query. Punctuation separates words.
//
//	rome trip        documents with any of the words; those with more and rarer words rank first
//	"to the lake"    these words, one after the other
//	rom*             words that begin with rom
//	+rome            documents without the word are not found
//	-rome            documents with the word are not found; also -"to the lake", -tag:old, and -user-id,
//	                 which excludes the phrase
//	tag:travel       the word in a field: content, title, tag, category, key, speaker, caption, date;
//	                 also tag:"deep learning". Documents without it are not found
//	tag:a OR tag:b   documents with neither are not found. OR has no effect between optional words, and
//	                 next to an item that has no words. An item with - excludes next to OR as well
//
// A condition (+, -, a field or a phrase) applies to stop words too. Other stop words are ignored, unless the query has
// no other words. A phrase without any word is searched literally.
//
// A query never fails to parse; anything else is treated as words.
func Parse(s string, an *analyzer.Analyzer) *Query {
	q, _ := ParseIn(s, an, nil)
	return q
}

// Has reports whether any document contains the word w in one of the fields w.Fields.
type Has func(w *Word) (bool, error)

// ParseIn is like Parse, for the documents of an index. If no document has the words after the colon in the named
// field (key:value in a store without keys, for example), ParseIn treats the item as plain words and adds a note
// to the query. If contains is nil, ParseIn does not check this. It returns the first error of contains.
func ParseIn(s string, an *analyzer.Analyzer, contains Has) (*Query, error) {
	q := &Query{known: map[Word]int{}}
	var chain []item // the items joined by OR, usually one
	joined := false
	add := func() error {
		list, err := q.settled(chain, an, contains)
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

// counted makes the stop words of the query ordinary words if the query has no other words and no phrases.
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

// settled replaces items of the form field:words by plain words, if no document has these words in that field. Of
// several items joined by OR it replaces none if another item is a condition that some document can meet.
func (q *Query) settled(items []item, an *analyzer.Analyzer, contains Has) ([]item, error) {
	if contains == nil {
		return items, nil
	}
	none, holds := make([]bool, len(items)), false
	for i := range items {
		it := &items[i]
		if it.field != "" && !it.not {
			ok, err := it.found(an, contains)
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
		q.note(fmt.Sprintf("no memory has %s in the field %s: %s:%s is treated as words",
			written, it.field, it.name, written))
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

// found reports whether, for each word of an item, some document has the word in the item's field.
func (it *item) found(an *analyzer.Analyzer, contains Has) (bool, error) {
	for _, w := range it.words(an, true) {
		if analyzer.Common(w.Term) && !an.Indexed() {
			continue
		}
		if ok, err := contains(&w); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// chain adds one item, or several items that are joined by OR, to the query.
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
		known = known && len(indexed(it.words(an, true), an)) > 0 // words that are not indexed may still be in documents
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

// memberOf adds the words of an item to the query and returns the member of a group that they form.
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

// item is a piece of the text of a query: what is between two spaces, or a phrase in quotes, with the signs and the
// field before it.
type item struct {
	text   string
	field  string // the canonical name of the field; "" if none is named
	name   string // the name of the field as the query has it
	fields FieldSet
	phrase bool
	prefix bool
	must   bool
	not    bool
	or     bool
}

// split splits a query into items.
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

// mostPlain is the maximum number of different words that Plain takes from a text.
const mostPlain = 1 << 14

// Plain returns a query for the words of a text, without any syntax; at most the first mostPlain words.
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

// begins reports whether s begins with a character that can begin a word or a phrase.
func begins(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '"' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || text.Emoji(r)
}

// words returns the words of an item. If condition is false, the result also has additional forms of these words. The
// caller passes true for an item that documents must meet.
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

// indexed returns those words of a condition that can be in an index.
func indexed(words []Word, an *analyzer.Analyzer) []Word {
	if an.Indexed() {
		return words
	}
	return slices.DeleteFunc(slices.Clone(words), func(w Word) bool { return analyzer.Common(w.Term) })
}

// quieted marks stop words as Quiet, unless all words are stop words.
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

// item adds an item to the query. If the item is a condition that the index alone cannot decide, the method also
// adds a phrase, which is checked in the documents.
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
			return // a document with the words but not the phrase is not excluded
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

// add adds a word, if the query does not have it, and returns its index in All.
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

// term is one term of a text in a query, such as the text of an item.
type term struct {
	text   string
	beside bool // the term is an additional form of another term, so no condition requires it
}

// termsOf returns the terms of a text of a query, in order. Of adjoining characters of scripts without spaces it
// returns the pairs only, and of a name with signs the whole name.
func termsOf(s string, an *analyzer.Analyzer) (terms []term) {
	if one, ok := an.Single(s); ok {
		return []term{{text: one}}
	}
	var base []int // indexes in terms of the single words
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
		case analyzer.Pair: // follows its second character; its first character precedes that one unless it ended a pair
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

// seqOf returns the words of a text in their order. If the text has symbols, the result has the symbols too.
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
