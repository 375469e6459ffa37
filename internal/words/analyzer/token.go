package analyzer

import "github.com/varve-db/varve/internal/text"

// Kind is what a Token is.
type Kind uint8

// The kinds. Behind Pair they are those of text.More.
const (
	Word  Kind = iota
	Char       // of a script without spaces
	Pair       // of two of them that adjoin, behind the second
	Whole      // see package text, as the others
	Number
	Joined
	Shorter
	Part
	Symbol
)

// Token is a word of a text, or another form of words.
type Token struct {
	Kind     Kind
	Term     []byte // valid during the call
	Words    int    // of how many words before it, it is another form
	From, To int    // where it stands in the text; not in FirstTerms
}

// Tokens visits the words of a text in order, with those that Each leaves to the reader to choose from. In FirstTerms
// a word may be Common, which Each does not have.
func (a *Analyzer) Tokens(b []byte, visit func(t Token)) {
	if a.version > FirstTerms {
		a.read.visit = visit
		a.scan.Scan(b, &a.read)
		return
	}
	a.buf = text.Each(b, a.buf, func(w []byte) {
		switch t := a.known(w); {
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

// Single is the term of a text that is one word of small letters of ASCII, as most words of queries are; false: it is
// another one.
func (a *Analyzer) Single(s string) (term string, ok bool) {
	if len(s) == 0 || len(s) > MostTerm {
		return "", false
	}
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return "", false
		}
	}
	if term = string(a.known([]byte(s))); term == "" {
		term = AsCommon(s)
	}
	return term, true
}

// Indexed reports whether an index has words that are Common.
func (a *Analyzer) Indexed() bool { return a.version > FirstTerms }

// reader has the words of a text for a query.
type reader struct {
	an    *Analyzer
	visit func(t Token)
}

// Word implements text.Sink.
func (r *reader) Word(w []byte, from, to int) {
	if t := r.an.known(w); len(t) > 0 {
		r.visit(Token{Kind: Word, Term: t, From: from, To: to})
	}
}

// Char implements text.Sink.
func (r *reader) Char(pair []byte, at, from, mid, to int) {
	r.visit(Token{Kind: Char, Term: cut(pair[at:]), From: mid, To: to})
	if at > 0 {
		r.visit(Token{Kind: Pair, Term: cut(pair), From: from, To: to})
	}
}

// More implements text.Sink.
func (r *reader) More(kind text.More, w []byte, from, to, n int) {
	if t := r.an.more(kind, w); len(t) > 0 {
		r.visit(Token{Kind: Whole + Kind(kind), Term: t, Words: n, From: from, To: to})
	}
}
