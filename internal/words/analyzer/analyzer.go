package analyzer

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/cespare/xxhash/v2"
	"golang.org/x/text/unicode/norm"

	"github.com/varve-db/varve/internal/text"
)

// MostTerm is the maximum length of a term in bytes. Longer terms are cut, in documents and in queries.
const MostTerm = 64

// mostTerms is the maximum number of words for which an Analyzer caches the term.
const mostTerms = 1 << 16

// Terms is the version of the terms that New makes. FirstTerms is the version of indexes that record no version: its
// terms keep letters as they are written, leave out stop words, and have no terms for names with signs.
const (
	Terms      = 2
	FirstTerms = 1
)

// Analyzer splits texts into terms. It must not be used by several goroutines at once.
type Analyzer struct {
	language string
	version  int
	stem     func(*snowballstem.Env) bool // stemmer of the language; nil: words are left unstemmed
	env      snowballstem.Env             // input and output of stem
	buf      []byte
	terms    map[string][]byte // cache: the term of each word seen so far; empty for a word that is not indexed
	scan     text.Scanner
	index    indexed
	read     reader
}

// New returns an analyzer for a language. English stems words and marks stop words as Common; the other Languages stem
// words; None, and a language that is not in Languages, leave words unstemmed.
func New(language string) *Analyzer { return NewOf(language, Terms) }

// NewOf is like New, for a version of the terms.
func NewOf(language string, version int) *Analyzer {
	a := &Analyzer{language: language, version: version, stem: stemmers[language], terms: map[string][]byte{}}
	a.index.an, a.read.an = a, a
	return a
}

// For returns an analyzer for a language and version. If a has this language and version, For returns a, whose cache
// has words already; otherwise it returns a new analyzer. a may be nil.
func (a *Analyzer) For(language string, version int) *Analyzer {
	if a != nil && a.language == language && a.version == version {
		return a
	}
	return NewOf(language, version)
}

// Again returns a new analyzer of the same language and version as a, to be used by another goroutine.
func (a *Analyzer) Again() *Analyzer { return NewOf(a.language, a.version) }

// Language returns the language of the analyzer.
func (a *Analyzer) Language() string { return a.language }

// Version returns the version of the analyzer's terms.
func (a *Analyzer) Version() int { return a.version }

// Print returns a fingerprint: analyzers that give different terms for the same text have different fingerprints.
func (a *Analyzer) Print() uint64 {
	return xxhash.Sum64String(strconv.Itoa(a.version) + "\x00" + a.language)
}

// common is the first byte of the term of a stop word. No other term begins with it.
const common = 0

// Common reports whether a term is that of a stop word (a word that nearly every text has). Only queries that require
// or exclude the word, or that have no other words, look for such a term.
func Common(term string) bool { return len(term) > 0 && term[0] == common }

// AsCommon returns the term of a stop word: the byte common, followed by the word. Common returns true for the result.
func AsCommon(term string) string { return string(rune(common)) + term }

// Shown returns a term in the form for display: without the mark that terms of stop words have.
func Shown(term string) string { return strings.TrimPrefix(term, string(rune(common))) }

// Each calls visit with each term by which a search finds the text b: first the terms of words and of their other
// forms, in the order of the text, and then the terms of parts of identifiers. A term is valid only during the call of
// visit.
//
// Quiet terms do not count towards the length of the text, and neither do the terms of stop words (see Common). The
// quiet terms are those of pairs of adjacent characters in scripts without spaces, in which each character is a term
// too, and those of other forms of words, see text.More. Once reports which terms count only once in a text.
func (a *Analyzer) Each(b []byte, visit func(term []byte, quiet bool)) {
	a.Words(b, func(w []byte) {
		if t := a.cachedTerm(w); len(t) > 0 {
			visit(t, false)
		}
	}, visit)
}

// Words is like Each, but calls word with each word of the text instead of visit with the word's term. It is for a
// caller that keeps the terms of words in a table, and calls Term only for new words.
func (a *Analyzer) Words(b []byte, word func(w []byte), term func(term []byte, quiet bool)) {
	if a.version > FirstTerms {
		x := &a.index
		x.word, x.term, x.parts, x.ends = word, term, x.parts[:0], x.ends[:0]
		a.scan.Scan(b, x)
		from := 0
		for _, end := range x.ends {
			term(x.parts[from:end], true)
			from = end
		}
		return
	}
	a.buf = text.Each(b, a.buf, word, func(pair []byte, at int) {
		term(cut(pair[at:]), false)
		if at > 0 {
			term(cut(pair), true)
		}
	})
}

// indexed is a text.Sink that receives the words of a text and passes their terms on to an index.
type indexed struct {
	an   *Analyzer
	word func(w []byte)
	term func(term []byte, quiet bool)

	parts []byte // the terms of parts of identifiers
	ends  []int  // offset of the end of each term in parts
}

// Once reports whether a term counts only once in a text, even if the text has it several times.
func Once(term []byte, quiet bool) bool { return quiet && term[0] < utf8.RuneSelf || term[0] == common }

// Word implements text.Sink.
func (x *indexed) Word(w []byte, _, _ int) { x.word(w) }

// Char implements text.Sink.
func (x *indexed) Char(pair []byte, off, _, _, _ int) {
	x.term(cut(pair[off:]), false)
	if off > 0 {
		x.term(cut(pair), true)
	}
}

// More implements text.Sink.
func (x *indexed) More(kind text.More, w []byte, _, _, _ int) {
	t := x.an.formTerm(kind, w)
	switch {
	case len(t) == 0:
	case kind == text.Part: // terms of parts are visited after all words of the text, which may include the same terms
		x.parts = append(x.parts, t...)
		x.ends = append(x.ends, len(x.parts))
	default:
		x.term(t, true)
	}
}

// formTerm returns the term of an additional form of words. It returns an empty term if that form is not indexed.
func (a *Analyzer) formTerm(kind text.More, w []byte) []byte {
	switch last := w[len(w)-1]; {
	case kind == text.Part:
		if t := a.cachedTerm(w); len(t) > 0 && t[0] != common {
			return t
		}
		return nil
	case kind == text.Whole && 'a' <= last && last <= 'z':
		return a.cachedTerm(w)
	}
	return cut(w)
}

// cachedTerm returns the term of a word, and caches it.
func (a *Analyzer) cachedTerm(w []byte) []byte {
	t, ok := a.terms[string(w)]
	if !ok {
		t = a.keep(w)
	}
	return t
}

func cut(w []byte) []byte {
	if len(w) <= MostTerm {
		return w
	}
	n := MostTerm
	for n > 0 && !utf8.RuneStart(w[n]) {
		n--
	}
	return w[:n]
}

// keep computes the term of a word and caches it, unless the word is longer than MostTerm.
func (a *Analyzer) keep(w []byte) []byte {
	if len(w) > MostTerm {
		return a.Term(w)
	}
	if len(a.terms) >= mostTerms {
		clear(a.terms)
	}
	t := bytes.Clone(a.Term(w))
	a.terms[string(w)] = t
	return t
}

// Term returns the term by which a word is found, or an empty one if the word is not indexed.
func (a *Analyzer) Term(w []byte) []byte {
	if a.version > FirstTerms {
		return a.termOf(w)
	}
	if a.language != English && a.stem != nil {
		return a.stemmed(w)
	}
	plain := true // letters from a to z only
	for _, c := range w {
		if c >= utf8.RuneSelf {
			w = withoutMarks(w)
			plain = false
			for _, c := range w {
				if plain = 'a' <= c && c <= 'z'; !plain {
					break
				}
			}
			break
		}
		plain = plain && 'a' <= c && c <= 'z'
	}
	if a.language != English {
		return cut(w)
	}
	if stopWords[string(w)] {
		return nil
	}
	if !plain || len(w) < 3 || len(w) > MostTerm {
		return cut(w)
	}
	return a.stemOf(w)
}

// termOf is like Term, for the terms of version 2 and later.
func (a *Analyzer) termOf(w []byte) []byte {
	if a.language != English && a.stem != nil {
		if t := a.stemmed(w); len(t) > 0 {
			return t
		}
		return cut(w)
	}
	plain, ascii := true, true // letters from a to z only
	for _, c := range w {
		plain, ascii = plain && 'a' <= c && c <= 'z', ascii && c < utf8.RuneSelf
	}
	if a.language == English && stopWords[string(w)] {
		return append([]byte{common}, w...)
	}
	if !ascii {
		bare := withoutMarks(w)
		if len(bare) == 0 || a.language == English && stopWords[string(bare)] { // Å becomes "a" but is not the article
			return cut(w)
		}
		w, plain = bare, letters(bare)
	}
	if a.language != English || !plain || len(w) < 3 || len(w) > MostTerm {
		return cut(w)
	}
	return a.stemOf(w)
}

// letters reports whether w consists of letters from a to z only.
func letters(w []byte) bool {
	for _, c := range w {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// stemmed returns the stem of a word in a language other than English. The stemmers of these languages use the marks of
// letters, so marks are removed after stemming.
func (a *Analyzer) stemmed(w []byte) []byte {
	if len(w) <= MostTerm && utf8.Valid(w) &&
		bytes.IndexFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) < 0 {
		w = a.stemOf(norm.NFC.Bytes(w))
	}
	return cut(withoutMarks(w))
}

func (a *Analyzer) stemOf(w []byte) []byte {
	a.env.SetCurrent(string(w))
	a.stem(&a.env)
	if of := a.env.Current(); of != string(w) {
		return []byte(of)
	}
	return w
}

// withoutMarks returns w without the marks over and under Latin, Greek and Cyrillic letters. Marks of other scripts
// distinguish words and stay. withoutMarks does not change w, but may return it.
func withoutMarks(w []byte) []byte {
	d := norm.NFD.Bytes(w)
	var out []byte
	from := 0
	for i := 0; i < len(d); {
		r, n := utf8.DecodeRune(d[i:])
		if r >= 0x300 && r <= 0x36f {
			out = append(out, d[from:i]...)
			from = i + n
		}
		i += n
	}
	if from == 0 {
		return w
	}
	return norm.NFC.Bytes(append(out, d[from:]...))
}
