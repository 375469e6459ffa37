package text

import "unicode/utf8"

// simple returns the end of the run of letters and numbers that begins at b[i]. ok is true if the run needs no
// normalisation: it consists of ASCII letters and digits and of runes for which isSimple returns true. Most texts in
// Latin, Greek, Cyrillic, Chinese, Japanese and Korean consist of such characters. If ok is false, end is the offset
// of the first other character.
func simple(b []byte, i int) (end int, ok bool) {
	for i < len(b) {
		r, n := rune(b[i]), 1
		if r < utf8.RuneSelf {
			if lower[r] == 0 {
				return i, true
			}
		} else if r, n = utf8.DecodeRune(b[i:]); !isSimple(r) {
			k := kindOf(r, n)
			return i, k == between || k == symbol
		}
		i += n
	}
	return i, true
}

// isSimple reports whether a letter is in normal form whatever precedes it, is not a mark, and, except for ß, folds to
// a single letter.
func isSimple(r rune) bool {
	switch {
	case r < 0xc0:
		return false
	case r <= 0x17e:
		return r != 0xd7 && r != 0xf7 && r != 0x132 && r != 0x133 && r != 0x13f && r != 0x140 && r != 0x149
	case r < 0x3ac:
		return r >= 0x391 && r <= 0x3a9 && r != 0x3a2
	case r <= 0x3ce:
		return r != 0x3b0
	case r < 0x3041:
		return r >= 0x400 && r <= 0x481 || r >= 0x48a && r <= 0x52f
	case r <= 0x30fc:
		return r <= 0x3094 || r >= 0x30a1 && r <= 0x30fa || r == 0x30fc
	}
	return r >= 0x4e00 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7a3
}

const sharpS = 0xdf

// foldSimple returns the case-folded form of a letter for which isSimple is true, and the letter's class.
func foldSimple(r rune) (rune, class) {
	switch {
	case r >= 0x3041:
		return r, unspaced
	case r >= 0x430 && r <= 0x44f, r >= 0xe0 && r <= 0xfe, r >= 0x3b1 && r <= 0x3c9 && r != 0x3c2:
		return r, letter
	case r >= 0x410 && r <= 0x42f, r >= 0xc0 && r <= 0xde, r >= 0x391 && r <= 0x3a9:
		return r + 0x20, letter
	}
	return fold(r), letter
}
