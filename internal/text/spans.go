package text

import "unicode/utf8"

// Spans visits where the words of b stand, as Each takes them, in order, until visit is false. alone is a
// character of a script without spaces; with the one that adjoins it, it is a pair.
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
