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
	buf      []byte
	terms    map[string]*Term // of words that came already
}

// Term is what words are found by that came already. Of and At are for who collects terms and wants to see
// at once which one it is.
type Term struct {
	Bytes  []byte // none where it is not looked for
	Of, At any
}

// New makes one for a language: English stems words and drops those that are in every text, the others
// stem, None takes words as they are, as does what is none of Languages.
func New(language string) *Analyzer {
	return &Analyzer{language: language, stem: stemmers[language], terms: map[string]*Term{}}
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
	a.EachTerm(b, func(term []byte, pair bool, _ *Term) { visit(term, pair) })
}

// EachTerm is Each with the Term of a word, nil where it has none.
func (a *Analyzer) EachTerm(b []byte, visit func(term []byte, pair bool, t *Term)) {
	a.buf = text.Each(b, a.buf, func(w []byte) {
		t := a.terms[string(w)]
		if t == nil {
			if t = a.keep(w); t == nil {
				if w = a.termOf(w); len(w) > 0 {
					visit(w, false, nil)
				}
				return
			}
		}
		if len(t.Bytes) > 0 {
			visit(t.Bytes, false, t)
		}
	}, func(pair []byte, at int) {
		visit(cut(pair[at:]), false, nil)
		if at > 0 {
			visit(cut(pair), true, nil)
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

// keep keeps the term of a word; nil where the word is so long that it is not.
func (a *Analyzer) keep(w []byte) *Term {
	if len(w) > MostTerm {
		return nil
	}
	if len(a.terms) >= mostTerms {
		clear(a.terms)
	}
	word := string(w)
	t := &Term{Bytes: bytes.Clone(a.termOf(w))}
	a.terms[word] = t
	return t
}

// termOf is what a word is found by; empty where it is not.
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
