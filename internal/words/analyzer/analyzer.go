package analyzer

import (
	"bytes"
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

// Analyzer makes terms of texts. It belongs to one goroutine.
type Analyzer struct {
	language string
	stem     func(*snowballstem.Env) bool // nil: words are taken as they are
	env      snowballstem.Env             // of stem
	buf      []byte
	terms    map[string][]byte // of words that came already; none where a word is not looked for
}

// New makes one for a language: English stems words and drops those that are in every text, the others
// stem, None takes words as they are, as does what is none of Languages.
func New(language string) *Analyzer {
	return &Analyzer{language: language, stem: stemmers[language], terms: map[string][]byte{}}
}

// For is an analyzer of a language: a itself, with the words that it knows, if it is of that one. a may be nil.
func (a *Analyzer) For(language string) *Analyzer {
	if a != nil && a.language == language {
		return a
	}
	return New(language)
}

// Language is the analyzer's.
func (a *Analyzer) Language() string { return a.language }

// printVersion changes whenever the same text may give other terms.
const printVersion = "1"

// Print tells analyzers apart that give other terms for the same text.
func (a *Analyzer) Print() uint64 { return xxhash.Sum64String(printVersion + "\x00" + a.language) }

// Each visits the terms of a text, in order. A term is valid during the call. Of adjoining characters
// of scripts without spaces there is each, and each pair.
func (a *Analyzer) Each(b []byte, visit func(term []byte, pair bool)) {
	a.Words(b, func(w []byte) {
		t, ok := a.terms[string(w)]
		if !ok {
			t = a.keep(w)
		}
		if len(t) > 0 {
			visit(t, false)
		}
	}, visit)
}

// Words is Each for who knows the terms of words: it has words in their place, whose Term is looked for.
func (a *Analyzer) Words(b []byte, word func(w []byte), char func(term []byte, pair bool)) {
	a.buf = text.Each(b, a.buf, word, func(pair []byte, at int) {
		char(cut(pair[at:]), false)
		if at > 0 {
			char(cut(pair), true)
		}
	})
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
