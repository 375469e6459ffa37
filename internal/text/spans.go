package text

import "unicode/utf8"

// Spans calls visit with the offsets of the words of b, as Each finds them, in order, until visit returns false. alone
// means a character of a script without spaces; together with the adjoining one before it, it is also a pair.
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
