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

// mostStems bounds the memory of what was stemmed already.
const mostStems = 1 << 16

// Analyzer makes terms of texts. It belongs to one goroutine.
type Analyzer struct {
	language string
	stem     func(*snowballstem.Env) bool // nil: words are taken as they are
	buf      []byte
	terms    map[string][]byte // of words that were stemmed already
}

// New makes one for a language: English stems words and drops those that are in every text, the others
// stem, None takes words as they are, as does what is none of Languages.
func New(language string) *Analyzer {
	return &Analyzer{language: language, stem: stemmers[language], terms: map[string][]byte{}}
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
	a.buf = text.Each(b, a.buf, func(w []byte) {
		if t := a.term(w); len(t) > 0 {
			visit(t, false)
		}
	}, func(pair []byte, at int) {
		visit(cut(pair[at:]), false)
		if at > 0 {
			visit(cut(pair), true)
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

// term is what a word is found by; empty where it is not.
func (a *Analyzer) term(w []byte) []byte {
	if a.stem == nil {
		return a.termOf(w)
	}
	if t, ok := a.terms[string(w)]; ok {
		return t
	}
	t := a.termOf(w)
	if len(w) <= MostTerm {
		if len(a.terms) >= mostStems {
			clear(a.terms)
		}
		a.terms[string(w)] = bytes.Clone(t)
	}
	return t
}

func (a *Analyzer) termOf(w []byte) []byte {
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
	return a.stemOf(string(w))
}

// stemmed is the stem of a word of another language than English, whose stemmers know the marks of letters.
func (a *Analyzer) stemmed(w []byte) []byte {
	if len(w) <= MostTerm && utf8.Valid(w) && bytes.IndexFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) < 0 {
		w = a.stemOf(norm.NFC.String(string(w)))
	}
	return cut(withoutMarks(w))
}

func (a *Analyzer) stemOf(w string) []byte {
	env := snowballstem.NewEnv(w)
	a.stem(env)
	return []byte(env.Current())
}

// withoutMarks removes the marks over and under Latin, Greek and Cyrillic letters. Those of other
// scripts tell words apart.
func withoutMarks(w []byte) []byte {
	d := norm.NFD.Bytes(w)
	out, left := d[:0], false
	for i := 0; i < len(d); {
		r, n := utf8.DecodeRune(d[i:])
		if r >= 0x300 && r <= 0x36f {
			left = true
		} else {
			out = append(out, d[i:i+n]...)
		}
		i += n
	}
	if !left {
		return w
	}
	return norm.NFC.Bytes(out)
}
