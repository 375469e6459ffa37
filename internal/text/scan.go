package text

import (
	"unicode/utf8"
)

// More is an additional form of one or more words of a text, with a term of its own.
type More uint8

// The forms.
const (
	// Whole is a word together with its signs, such as C++ or C#, or a contraction without its apostrophe: dont for
	// don't. Queries and phrases search for it in place of the words that it is made of.
	Whole More = iota
	// Number is a number with points, such as 2.10. Queries search for it in place of its words, but a phrase compares
	// these words one by one.
	Number
	// Joined is a short name that consists of two words, such as R&D. The two words are also found separately.
	Joined
	// Shorter is a shorter form of a Number or a Symbol, indexed but not used in queries: 2.10 of 2.10.3, or a single
	// emoji of several that are joined.
	Shorter
	// Part is a part of an identifier: user of getUserById.
	Part
	// Symbol is an emoji with its modifiers. It consists of no words.
	Symbol
)

// Sink receives what Scan finds, in order. Bytes are valid during the call only; from and to are offsets in the text.
type Sink interface {
	// Word is called with a word of a script with spaces.
	Word(w []byte, from, to int)
	// Char is called with the character pair[off:] of a script without spaces and the character adjoining it
	// before, pair[:off]. If no such character adjoins it, off is 0. from and mid are the offsets at which the
	// two characters begin, and to is the offset at which the second one ends; if off is 0, mid equals from.
	Char(pair []byte, off, from, mid, to int)
	// More is called with another form of the last n words; a Part is a piece of the last word.
	More(kind More, w []byte, from, to, n int)
}

// The limits of Scan.
const (
	mostWhole  = 16 // bytes of a word before ++, # or an apostrophe
	mostDotted = 64 // bytes of a number with points
	mostPoints = 5  // numbers after points
	mostSplit  = 64 // bytes of a word that is split into parts
	mostJoined = 2  // letters on each side of an ampersand
)

// Scanner finds the words of texts. It must not be used by several goroutines at once. The zero Scanner is ready to
// use.
type Scanner struct {
	word, more, next []byte
	run, ahead       run
	single           lone
}

// Scan passes the words of b to sink.
func (s *Scanner) Scan(b []byte, sink Sink) {
	for i := 0; i < len(b); {
		c := b[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(b[i:])
			switch k := kindOf(r, n); {
			case k == mark: // a mark on something other than a letter, such as the stroke of ≠
				i += n
			case k.ofWord():
				i = s.scanNonASCII(b, i, sink)
			case k == symbol:
				i = s.symbol(b, i, r, n, sink)
			default:
				i += n
			}
		case lower[c] == 0:
			i++
		default:
			j, inner := asciiWord(b, i)
			if goesOn(b, j) {
				i = s.scanNonASCII(b, i, sink)
				continue
			}
			s.word = folded(s.word[:0], b[i:j])
			sink.Word(s.word, i, j)
			if inner && j-i <= mostSplit {
				s.parts(b, i, j, sink)
			}
			if j < len(b) && signs[b[j]] {
				j = s.signed(b, i, j, sink)
			}
			i = j
		}
	}
}

// signs are the first bytes of signs that can be part of the spelling of a word.
var signs = [256]bool{'+': true, '#': true, '.': true, '&': true, '\'': true, 0xca: true, 0xe2: true, 0xef: true}

// asciiWord returns the end of the ASCII letters and digits from i on. inner reports whether a capital letter is among
// them after the first character.
func asciiWord(b []byte, i int) (j int, inner bool) {
	for j = i; j < len(b) && b[j] < utf8.RuneSelf && lower[b[j]] != 0; j++ {
		inner = inner || j > i && b[j] < 'a' && b[j] >= 'A'
	}
	return j, inner
}

// goesOn reports whether an ASCII word that ends at j continues with non-ASCII characters.
func goesOn(b []byte, j int) bool {
	if j == len(b) || b[j] < utf8.RuneSelf {
		return false
	}
	r, n := utf8.DecodeRune(b[j:])
	k := kindOf(r, n)
	return k == nothing || k.ofWord()
}

// lone is a Sink for a text that should consist of one word. It keeps the word, and counts the words.
type lone struct {
	word []byte
	n    int
}

// Word implements Sink.
func (l *lone) Word(w []byte, _, _ int) { l.word, l.n = append(l.word[:0], w...), l.n+1 }

// Char implements Sink.
func (l *lone) Char([]byte, int, int, int, int) { l.n = 2 }

// More implements Sink.
func (l *lone) More(More, []byte, int, int, int) {}

// peek returns the word at offset i, case folded, and the offset at which its run ends. The word is nil unless
// the run is a single word whose folded form is ASCII.
func (s *Scanner) peek(b []byte, i int) ([]byte, int) {
	if i >= len(b) {
		return nil, i
	}
	if b[i] < utf8.RuneSelf {
		if lower[b[i]] == 0 {
			return nil, i
		}
		if j, _ := asciiWord(b, i); !goesOn(b, j) {
			s.next = folded(s.next[:0], b[i:j])
			return s.next, j
		}
	} else if r, n := utf8.DecodeRune(b[i:]); !kindOf(r, n).ofWord() {
		return nil, i
	}
	s.single.n = 0
	j := s.ahead.scan(b, i, &s.single)
	s.ahead.end(&s.single)
	if s.single.n != 1 || !ascii(s.single.word) {
		return nil, j
	}
	return s.single.word, j
}

func ascii(w []byte) bool {
	for _, c := range w {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// signed handles the signs after the word s.word, which is at b[i:j]. It passes to sink the forms that these signs
// make with the word, such as C++, and returns the offset at which the last of these forms ends, or j if the signs
// make no form.
func (s *Scanner) signed(b []byte, i, j int, sink Sink) int {
	w := s.word
	switch b[j] {
	case '+':
		if j+1 < len(b) && b[j+1] == '+' && len(w) <= mostWhole {
			s.more = append(append(s.more[:0], w...), "++"...)
			sink.More(Whole, s.more, i, j+2, 1)
			return j + 2
		}
	case '#':
		if len(w) <= mostWhole && letters(w) && (j+1 == len(b) || b[j+1] < utf8.RuneSelf && lower[b[j+1]] == 0 &&
			b[j+1] != '#') {
			s.more = append(append(s.more[:0], w...), '#')
			sink.More(Whole, s.more, i, j+1, 1)
			return j + 1
		}
	case '.':
		if digit(w[len(w)-1]) {
			return s.dotted(b, i, j, sink)
		}
	case '&':
		if len(w) > mostJoined || !letters(w) {
			break
		}
		if next, k := s.peek(b, j+1); len(next) > 0 && len(next) <= mostJoined && letters(next) {
			s.more = append(append(append(s.more[:0], w...), '&'), next...)
			sink.Word(next, j+1, k)
			sink.More(Joined, s.more, i, k, 2)
			return k
		}
	default:
		return s.contraction(b, i, j, sink)
	}
	return j
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func letters(w []byte) bool {
	for _, c := range w {
		if digit(c) {
			return false
		}
	}
	return true
}

// apostrophe returns the length in bytes of an apostrophe at the beginning of b, or 0 if b begins with something else.
func apostrophe(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case b[0] == '\'':
		return 1
	case b[0] < utf8.RuneSelf:
		return 0
	}
	switch r, n := utf8.DecodeRune(b); r {
	case 0x2019, 0x2bc, 0xff07, 0x2018, 0x2032:
		return n
	}
	return 0
}

// contraction passes to sink the form of a contraction that people write without the apostrophe: dont, im, ive,
// youre. It omits forms that are other words: hell, shed and well. b[i:j] is the word before the apostrophe.
// contraction returns the offset of the end of the contraction, or j if it passes on nothing.
func (s *Scanner) contraction(b []byte, i, j int, sink Sink) int {
	n, w := apostrophe(b[j:]), s.word
	if n == 0 || len(w) > mostWhole {
		return j
	}
	next, k := s.peek(b, j+n)
	switch string(next) {
	case "t":
		if len(w) < 2 || w[len(w)-1] != 'n' {
			return j
		}
	case "ve":
	case "m":
		if string(w) != "i" {
			return j
		}
	case "re":
		if string(w) == "we" {
			return j
		}
	default:
		return j
	}
	s.more = append(append(s.more[:0], w...), next...)
	sink.Word(next, j+n, k)
	sink.More(Whole, s.more, i, k, 2)
	return k
}

// dotted passes to sink a number with points, such as a version or a decimal fraction. The number begins in the
// word b[i:j], which ends with a digit. dotted returns the offset of the number's end, or j if no point with a
// digit after it follows the word.
func (s *Scanner) dotted(b []byte, i, j int, sink Sink) int {
	w := s.word
	head := len(w)
	for head > 0 && digit(w[head-1]) {
		head--
	}
	words := 0
	if head == 0 || head == 1 && w[0] == 'v' { // otherwise the word contains more than the number
		words = 1
	}
	s.more = append(s.more[:0], w[head:]...)
	from, end, points := max(i, j-len(s.more)), j, 0
	for points < mostPoints && end < len(b) && b[end] == '.' {
		next, k := s.peek(b, end+1)
		if len(next) == 0 || !digit(next[0]) || len(s.more)+len(next) > mostDotted {
			break
		}
		sink.Word(next, end+1, k)
		if points > 0 {
			sink.More(Shorter, s.more, from, end, points+words)
		}
		d := 0
		for d < len(next) && digit(next[d]) {
			d++
		}
		s.more = append(append(s.more, '.'), next[:d]...)
		points++
		end = k
		if d < len(next) { // such as 2.10rc1
			sink.More(Shorter, s.more, from, end, points+words)
			s.more = append(s.more, next[d:]...)
			break
		}
	}
	if points > 0 {
		sink.More(Number, s.more, from, end, points+words)
	}
	return end
}

// parts passes to sink the parts into which the capital letters divide the ASCII word b[i:j].
func (s *Scanner) parts(b []byte, i, j int, sink Sink) {
	capital := func(k int) bool { return 'A' <= b[k] && b[k] <= 'Z' }
	small := func(k int) bool { return 'a' <= b[k] && b[k] <= 'z' }
	from := i
	part := func(k int) {
		if k-from > 1 && (from > i || k < j) {
			s.more = folded(s.more[:0], b[from:k])
			sink.More(Part, s.more, from, k, 1)
		}
		from = k
	}
	for k := i + 1; k < j; k++ {
		switch {
		case !capital(k):
		case !capital(k - 1):
			part(k)
		case k+1 < j && small(k+1) && !(k+2 == j && b[k+1] == 's'): // the S of HTTPServer, not the D of IDs
			part(k)
		}
	}
	part(j)
}
