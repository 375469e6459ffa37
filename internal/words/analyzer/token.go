package analyzer

import "github.com/varve-db/varve/internal/text"

// Kind is the kind of a Token.
type Kind uint8

// The kinds of tokens. Those after Pair correspond to text.More.
const (
	Word  Kind = iota
	Char       // a character of a script without spaces
	Pair       // two adjoining characters of such a script; follows the Char of the second
	Whole      // this and the following kinds: see text.More
	Number
	Joined
	Shorter
	Part
	Symbol
)

// Token is a word of a text, or another form of one or more words.
type Token struct {
	Kind     Kind
	Term     []byte // bytes of the term, valid only during the call
	Words    int    // number of preceding words of which this token is another form
	From, To int    // byte offsets in the text; not set with FirstTerms
}

// Tokens calls visit for the words of a text and their other forms, in the order of the text, for a query that chooses
// between them. With the version FirstTerms it also visits stop words, which Each leaves out in that version.
func (a *Analyzer) Tokens(b []byte, visit func(t Token)) {
	if a.version > FirstTerms {
		a.read.visit = visit
		a.scan.Scan(b, &a.read)
		return
	}
	a.buf = text.Each(b, a.buf, func(w []byte) {
		switch t := a.cachedTerm(w); {
		case len(t) > 0:
			visit(Token{Kind: Word, Term: t})
		case a.language == English && stopWords[string(w)]:
			visit(Token{Kind: Word, Term: []byte(AsCommon(string(w)))})
		}
	}, func(pair []byte, at int) {
		visit(Token{Kind: Char, Term: cut(pair[at:])})
		if at > 0 {
			visit(Token{Kind: Pair, Term: cut(pair)})
		}
	})
}

// Single returns the term of s if s is one word of lower-case ASCII letters, as most words in queries are. Otherwise ok
// is false.
func (a *Analyzer) Single(s string) (term string, ok bool) {
	if len(s) == 0 || len(s) > MostTerm {
		return "", false
	}
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return "", false
		}
	}
	if term = string(a.cachedTerm([]byte(s))); term == "" {
		term = AsCommon(s)
	}
	return term, true
}

// Indexed reports whether indexes of this version have terms for stop words (see Common).
func (a *Analyzer) Indexed() bool { return a.version > FirstTerms }

// reader is a text.Sink that receives the words of a text and passes tokens on to a query.
type reader struct {
	an    *Analyzer
	visit func(t Token)
}

// Word implements text.Sink.
func (r *reader) Word(w []byte, from, to int) {
	if t := r.an.cachedTerm(w); len(t) > 0 {
		r.visit(Token{Kind: Word, Term: t, From: from, To: to})
	}
}

// Char implements text.Sink.
func (r *reader) Char(pair []byte, off, from, mid, to int) {
	r.visit(Token{Kind: Char, Term: cut(pair[off:]), From: mid, To: to})
	if off > 0 {
		r.visit(Token{Kind: Pair, Term: cut(pair), From: from, To: to})
	}
}

// More implements text.Sink.
func (r *reader) More(kind text.More, w []byte, from, to, n int) {
	if t := r.an.formTerm(kind, w); len(t) > 0 {
		r.visit(Token{Kind: Whole + Kind(kind), Term: t, Words: n, From: from, To: to})
	}
}
