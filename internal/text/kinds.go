package text

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// symbol is the class of emoji and of signs such as №. Such a character separates words. An emoji is also a term
// itself, and any other sign stands for words.
const symbol = nothing + 1

// kindOf returns the class of the rune r for Scan. n is the number of bytes of r in the text: an invalid byte is
// utf8.RuneError with n = 1.
func kindOf(r rune, n int) class {
	switch {
	case r == utf8.RuneError && n == 1:
		return between
	case r < 0x300: // up to the Latin letters
		switch {
		case r == softHyphen:
			return nothing
		case r == 0x2bc: // a form of apostrophe
			return between
		case !unicode.IsLetter(r) && !unicode.IsNumber(r):
			return between
		}
		return letter
	case ignored(r):
		return nothing
	case r == 0x345: // its upper case is the letter iota
		return letter
	case r == 0xff9e || r == 0xff9f: // the marks of half-width katakana
		return mark
	case emoji(r):
		return symbol
	}
	c := classOf(r)
	if c == between && r >= 0x2100 && unicode.Is(unicode.So, r) && compatible(r) {
		return symbol
	}
	return c
}

// ofWord reports whether runes of this class are part of words.
func (c class) ofWord() bool { return c == letter || c == mark || c == unspaced }

const softHyphen = 0xad

// ignored reports whether a rune is one of the invisible runes that join characters, select a form, or set a direction.
func ignored(r rune) bool {
	switch {
	case r == softHyphen, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164,
		r == 0xfeff, r == 0xffa0:
		return true
	case r >= 0x180b && r <= 0x180f, r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f,
		r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}

// Emoji reports whether a rune is an emoji.
func Emoji(r rune) bool { return emoji(r) }

func emoji(r rune) bool {
	switch {
	case r < 0x203c || r > 0x1faff || r > 0x303d && r < 0x1f000:
		return false
	case r >= 0x1f000:
		return !compatible(r)
	}
	return r == 0x203c || r == 0x2049 || r >= 0x2194 && r <= 0x21aa || r >= 0x231a && r <= 0x23ff ||
		r >= 0x25aa && r <= 0x25fe || r >= 0x2600 && r <= 0x27bf && !(r >= 0x2776 && r <= 0x2793) ||
		r == 0x2934 || r == 0x2935 || r >= 0x2b05 && r <= 0x2b55 || r == 0x3030 || r == 0x303d
}

// compatible reports whether normalisation (NFKC) replaces a rune by other characters, as it replaces ㎏ by kg.
func compatible(r rune) bool {
	var b [utf8.UTFMax]byte
	return norm.NFKC.Properties(utf8.AppendRune(b[:0], r)).Decomposition() != nil
}

// The runes that modify an emoji.
const (
	joiner    = 0x200d
	toneFirst = 0x1f3fb
	toneLast  = 0x1f3ff
	flagFirst = 0x1f1e6
	flagLast  = 0x1f1ff
	tagFirst  = 0xe0020
	tagLast   = 0xe007f
	keycap    = 0x20e3
)

// symbol passes to sink the emoji r, which is at b[i:i+n], with the runes that are joined to it. If r is not an
// emoji but another sign, symbol passes on the words for which the sign stands. It returns the offset of the
// symbol's end. All variants and colours of an emoji have the same term.
func (s *Scanner) symbol(b []byte, i int, r rune, n int, sink Sink) int {
	end := i + n
	if !emoji(r) { // a sign such as № or ㎏
		s.run.begin()
		s.run.segment(b[i:end], i)
		s.run.words(sink)
		s.run.end(sink)
		return end
	}
	s.more = append(s.more[:0], b[i:end]...)
	from, several, flag := 0, false, r >= flagFirst && r <= flagLast
	for end < len(b) {
		next, size := utf8.DecodeRune(b[end:])
		switch {
		case next == joiner:
			after, m := utf8.DecodeRune(b[end+size:])
			if m == 0 || !emoji(after) || len(s.more)+size+m > mostDotted {
				break
			}
			sink.More(Shorter, s.more[from:], i, end, 0)
			s.more = append(s.more, b[end:end+size+m]...)
			from, several = len(s.more)-m, true
			end += size + m
			continue
		case next >= toneFirst && next <= toneLast, next >= 0xfe00 && next <= 0xfe0f, next == keycap:
			end += size
			continue
		case next >= tagFirst && next <= tagLast && len(s.more)+size <= mostDotted, flag && next >= flagFirst &&
			next <= flagLast:
			s.more = append(s.more, b[end:end+size]...)
			end += size
			flag = false
			continue
		}
		break
	}
	if several {
		sink.More(Shorter, s.more[from:], i, end, 0)
	}
	sink.More(Symbol, s.more, i, end, 0)
	return end
}
