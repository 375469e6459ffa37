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

// MostTerm bounds a term, in bytes: what is longer is cut, in documents and in queries.
const MostTerm = 64

// mostTerms bounds the memory of words that came already.
const mostTerms = 1 << 16

// Terms is the version of the terms that New makes, and FirstTerms the one of indexes that name none. FirstTerms has
// letters as they are written, no words that are in every text, and no names with signs.
const (
	Terms      = 2
	FirstTerms = 1
)

// Analyzer makes terms of texts. It belongs to one goroutine.
type Analyzer struct {
	language string
	version  int
	stem     func(*snowballstem.Env) bool // nil: words are taken as they are
	env      snowballstem.Env             // of stem
	buf      []byte
	terms    map[string][]byte // of words that came already; none where a word is not looked for
	scan     text.Scanner
	index    indexed
	read     reader
}

// New makes one for a language: English stems words and keeps those that are in every text apart, the others
// stem, None takes words as they are, as does what is none of Languages.
func New(language string) *Analyzer { return NewOf(language, Terms) }

// NewOf is New for the terms of a version.
func NewOf(language string, version int) *Analyzer {
	a := &Analyzer{language: language, version: version, stem: stemmers[language], terms: map[string][]byte{}}
	a.index.an, a.read.an = a, a
	return a
}

// For is an analyzer of a language and a version: a itself, with the words that it knows, if it is of both. a may be
// nil.
func (a *Analyzer) For(language string, version int) *Analyzer {
	if a != nil && a.language == language && a.version == version {
		return a
	}
	return NewOf(language, version)
}

// Again is another one like a, for another goroutine.
func (a *Analyzer) Again() *Analyzer { return NewOf(a.language, a.version) }

// Language is the analyzer's.
func (a *Analyzer) Language() string { return a.language }

// Version is that of its terms.
func (a *Analyzer) Version() int { return a.version }

// Print tells analyzers apart that give other terms for the same text.
func (a *Analyzer) Print() uint64 {
	return xxhash.Sum64String(strconv.Itoa(a.version) + "\x00" + a.language)
}

// common is what the term of a word begins with that is in every text. No other term does.
const common = 0

// Common reports whether a term is a word that is in every text. It is found only by a query that requires or excludes
// it, or that has no other words.
func Common(term string) bool { return len(term) > 0 && term[0] == common }

// AsCommon is the term of a word as Common has it.
func AsCommon(term string) string { return string(rune(common)) + term }

// Shown is a term as people write it.
func Shown(term string) string { return strings.TrimPrefix(term, string(rune(common))) }

// Each visits the terms of a text, in order: all by which it is found. A term is valid during the call. Quiet ones are
// beside the words that are counted: pairs of adjoining characters of scripts without spaces, of which there is each
// character too, and other forms of words, of which those of ASCII are Once; the parts of identifiers come last. So are
// those that are Common.
func (a *Analyzer) Each(b []byte, visit func(term []byte, quiet bool)) {
	a.Words(b, func(w []byte) {
		if t := a.known(w); len(t) > 0 {
			visit(t, false)
		}
	}, visit)
}

// Words is Each for a caller that knows the terms of words: it gets words in their place, whose Term is looked for.
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

// indexed has the terms of a text for an index.
type indexed struct {
	an   *Analyzer
	word func(w []byte)
	term func(term []byte, quiet bool)

	parts []byte // the terms of parts of identifiers
	ends  []int  // of each
}

// Once reports whether of a term it is enough that a text has it: more of it says no more.
func Once(term []byte, quiet bool) bool { return quiet && term[0] < utf8.RuneSelf || term[0] == common }

// Word implements text.Sink.
func (x *indexed) Word(w []byte, _, _ int) { x.word(w) }

// Char implements text.Sink.
func (x *indexed) Char(pair []byte, at, _, _, _ int) {
	x.term(cut(pair[at:]), false)
	if at > 0 {
		x.term(cut(pair), true)
	}
}

// More implements text.Sink.
func (x *indexed) More(kind text.More, w []byte, _, _, _ int) {
	t := x.an.more(kind, w)
	switch {
	case len(t) == 0:
	case kind == text.Part: // behind the words of the text, which may have it
		x.parts = append(x.parts, t...)
		x.ends = append(x.ends, len(x.parts))
	default:
		x.term(t, true)
	}
}

// more is the term of another form of words; empty where it has none.
func (a *Analyzer) more(kind text.More, w []byte) []byte {
	switch last := w[len(w)-1]; {
	case kind == text.Part:
		if t := a.known(w); len(t) > 0 && t[0] != common {
			return t
		}
		return nil
	case kind == text.Whole && 'a' <= last && last <= 'z':
		return a.known(w)
	}
	return cut(w)
}

// known is the term of a word, which it keeps.
func (a *Analyzer) known(w []byte) []byte {
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

// keep keeps the term of a word unless that is long.
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

// Term is what a word is found by; empty where it is not.
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

// termOf is Term since version 2.
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
		if len(bare) == 0 || a.language == English && stopWords[string(bare)] { // Å is no article
			return cut(w)
		}
		w, plain = bare, letters(bare)
	}
	if a.language != English || !plain || len(w) < 3 || len(w) > MostTerm {
		return cut(w)
	}
	return a.stemOf(w)
}

// letters reports whether a word has letters from a to z only.
func letters(w []byte) bool {
	for _, c := range w {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// stemmed is the stem of a word of another language than English, whose stemmers know the marks of letters.
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

// withoutMarks removes the marks over and under Latin, Greek and Cyrillic letters. Those of other
// scripts tell words apart. It leaves w as it is, which d may be.
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
