package text

import "unicode/utf8"

// Spans calls visit with the offsets in b of each word that Each finds, in order, until visit returns false. The
// argument alone of visit is true if the word is one character of a script without spaces. Two such characters that
// adjoin are also one term of the index, a pair; Spans does not report pairs.
func Spans(b []byte, visit func(from, to int, alone bool) bool) {
	from, to, alone := -1, 0, false
	end := func() bool {
		if from < 0 {
			return true
		}
		at := from
		from = -1
		return visit(at, to, alone)
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		c := classOf(r)
		if r == utf8.RuneError && n == 1 {
			c = between
		}
		switch c {
		case nothing:
		case between:
			if !end() {
				return
			}
		case mark:
			if from < 0 {
				from, alone = i, false
			}
			to = i + n
		case letter:
			if from >= 0 && alone && !end() {
				return
			}
			if from < 0 {
				from, alone = i, false
			}
			to = i + n
		case unspaced:
			if !end() {
				return
			}
			from, to, alone = i, i+n, true
		}
		i += n
	}
	end()
}
