package text

import (
	"unicode"
	"unicode/utf8"
)

// lower has the folded form of each ASCII letter and digit, and 0 for other bytes.
var lower = func() (t [utf8.RuneSelf]byte) {
	for c := byte('a'); c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = c, c
	}
	for c := byte('0'); c <= '9'; c++ {
		t[c] = c
	}
	return t
}()

// class is the class of a rune. It determines how the tokeniser treats the rune.
type class int

const (
	between  class = iota // separates words
	letter                // part of a word
	unspaced              // a word of its own: a character of a script without spaces
	mark                  // belongs to the rune before it
	nothing               // ignored
)

func classOf(r rune) class {
	switch {
	case r >= 0x4e00 && r <= 0x9fff, r >= 0x3041 && r <= 0x3096, r >= 0xac00 && r <= 0xd7a3: // Han, Hiragana, Hangul
		return unspaced
	case r == 0xad || r == 0x200c || r == 0x200d || r == 0x2060 || r == 0xfeff:
		return nothing
	case unicode.IsMark(r):
		return mark
	case r == 0x30fc || r == 0xff70: // the sign for a long vowel
		return unspaced
	case !unicode.IsLetter(r) && !unicode.IsNumber(r):
		return between
	case r >= 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && !unicode.IsNumber(r):
		return unspaced
	}
	return letter
}

// fold returns one form that all cases of a letter have in common. It converts to upper case first, so that variants of
// a lower-case letter (σ and ς, s and ſ) become equal.
func fold(r rune) rune {
	if r >= 0xff01 && r <= 0xff5e { // full-width ASCII
		r -= 0xff01 - '!'
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// sink receives what tokenise finds. The bytes are valid during the call only.
type sink interface {
	word(w []byte)
	// ascii is called with a word of ASCII as it is in the text, to be folded with lower.
	ascii(w []byte)
	// char is called with the character pair[off:] of a script without spaces and the character immediately
	// before it, pair[:off]. If no such character precedes it, off is 0.
	char(pair []byte, off int)
}

// tokenise passes the words of b to s, in order. It uses buf as working memory, and returns buf, which it may have
// enlarged.
func tokenise(b []byte, s sink, buf []byte) []byte {
	word := buf[:0] // the word so far, or two characters, the second one from at on
	at := -1        // -1: word is not characters
	end := func() {
		switch {
		case at >= 0:
			s.char(word, at)
		case len(word) > 0:
			s.word(word)
		}
		word, at = word[:0], -1
	}
	for i := 0; i < len(b); {
		if c := b[i]; c < utf8.RuneSelf {
			if from := i; len(word) == 0 {
				for i < len(b) && b[i] < utf8.RuneSelf && lower[b[i]] != 0 {
					i++
				}
				if i > from && (i == len(b) || b[i] < utf8.RuneSelf) {
					s.ascii(b[from:i])
					continue
				}
				i = from
			}
			i++
			if l := lower[c]; l != 0 && at < 0 {
				word = append(word, l)
			} else {
				end()
				if l != 0 {
					word = append(word, l)
				}
			}
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		i += n
		if r == utf8.RuneError && n == 1 {
			end()
			continue
		}
		switch classOf(r) {
		case between:
			end()
		case letter:
			if at >= 0 {
				end()
			}
			word = utf8.AppendRune(word, fold(r))
		case mark:
			if at < 0 {
				r = fold(r)
			}
			word = utf8.AppendRune(word, r)
		case unspaced:
			if at < 0 {
				end()
				at = 0
			} else {
				s.char(word, at)
				word = word[:copy(word, word[at:])]
				at = len(word)
			}
			word = utf8.AppendRune(word, r)
		}
	}
	end()
	return word[:0]
}
