package text

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	// mostMarks is the maximum number of marks on one letter for which package norm is used, because norm inserts a
	// joiner after 30 marks. If a letter has more marks, inOrder sorts them.
	mostMarks = 24
	// mostAtOnce is the approximate number of bytes of a run that are normalised at a time.
	mostAtOnce = 4096
)

// run is a sequence of adjoining letters, marks and numbers, converted to NFKC and case folded.
type run struct {
	out    []byte
	pieces []piece // the parts of the text that out was made of
	splits []int   // offsets in out where a word ends although nothing is between
	runes  []rune

	word       []byte // as in tokenise
	at         int
	from, last int // offsets of word in the text
	mid        int // offset of its second character
}

// piece relates a part of the text to its normalised form. The part is text[from:to]. Its normalised form begins in
// out where that of the previous piece ends, and ends at the offset end.
type piece struct{ end, from, to int }

func (o *run) begin() {
	o.out, o.pieces, o.splits, o.word, o.at = o.out[:0], o.pieces[:0], o.splits[:0], o.word[:0], -1
}

// scanNonASCII passes to sink the words of the run at b[i:], which has non-ASCII characters. It returns the offset of
// the run's end. If signs after the run belong to its last word, as in C++, it returns the offset after these signs.
func (s *Scanner) scanNonASCII(b []byte, i int, sink Sink) int {
	j := s.run.scan(b, i, sink)
	if w := s.run.word; s.run.at < 0 && len(w) > 0 && ascii(w) && j < len(b) && signs[b[j]] {
		s.word = append(s.word[:0], w...)
		i = s.run.from
		s.run.end(sink)
		return s.signed(b, i, j, sink)
	}
	s.run.end(sink)
	return j
}

// scan passes to sink all words of the run at b[i:] except the last one, which the caller passes on by calling end.
// scan returns the offset of the run's end.
func (o *run) scan(b []byte, i int, sink Sink) int {
	o.begin()
	if end, ok := simple(b, i); ok {
		for i < end {
			r, n, k := rune(b[i]), 1, letter
			if r < utf8.RuneSelf {
				r = rune(lower[r])
			} else {
				r, n = utf8.DecodeRune(b[i:])
				if r == sharpS {
					o.take('s', k, i, i+n, sink)
					r = 's'
				} else {
					r, k = foldSimple(r)
				}
			}
			o.take(r, k, i, i+n, sink)
			i += n
		}
		return end
	}
	from, end := i, i // the part to be normalised next
	marks, most, odd := 0, 0, false
	add := func() {
		if end == from {
			return
		}
		if !odd && most <= mostMarks && norm.NFKC.IsNormal(b[from:end]) {
			o.normal(b[from:end], from)
		} else {
			o.segments(b[from:end], from)
		}
		from, most, odd = end, 0, false
	}
	numeric := false
	for end < len(b) {
		r, n, k := rune(b[end]), 1, letter
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(b[end:])
			k = kindOf(r, n)
		} else if lower[r] == 0 {
			break
		}
		if k == between || k == symbol {
			break
		}
		if k != mark {
			marks = 0
		}
		switch k {
		case nothing:
			odd = true
		case mark:
			marks++
			most = max(most, marks)
		case letter:
			number := r < utf8.RuneSelf && digit(byte(r)) || r >= utf8.RuneSelf && unicode.IsNumber(r)
			if number && numeric && unicode.Is(unicode.No, r) { // ½ does not belong to the number before it
				add()
				o.splits = append(o.splits, len(o.out))
			}
			numeric = number
		default:
			numeric = false
		}
		if end-from >= mostAtOnce && norm.NFKC.Properties(b[end:]).BoundaryBefore() && k != nothing {
			add()
			o.words(sink)
		}
		end += n
	}
	add()
	o.words(sink)
	return end
}

// segments normalises b letter by letter, each letter together with its marks, and adds the result to out. from is the
// offset of b in the text.
func (o *run) segments(b []byte, from int) {
	for i := 0; i < len(b); {
		n := segmentOf(b[i:])
		o.segment(b[i:i+n], from+i)
		i += n
	}
}

// segmentOf returns the length in bytes of the first letter in b together with the marks on it.
func segmentOf(b []byte) int {
	_, n := utf8.DecodeRune(b)
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if !ignored(r) && norm.NFKC.Properties(b[n:]).BoundaryBefore() {
			break
		}
		n += size
	}
	return n
}

// normal folds the case of b, which must be in normal form already, and adds the result to out. from is the offset of
// b in the text.
func (o *run) normal(b []byte, from int) {
	for i := 0; i < len(b); {
		r, n := rune(b[i]), 1
		switch {
		case r < utf8.RuneSelf:
			r = rune(lower[r])
		default:
			if r, n = utf8.DecodeRune(b[i:]); foldsToSeveral(r) {
				n = segmentOf(b[i:])
				o.segment(b[i:i+n], from+i)
				i += n
				continue
			}
			r = fold(r)
		}
		if r == dotAbove && len(o.out) > 0 && o.out[len(o.out)-1] == 'i' { // part of the lower case of İ
			r = 0x34f
		}
		o.out = utf8.AppendRune(o.out, r)
		o.pieces = append(o.pieces, piece{len(o.out), from + i, from + i + n})
		i += n
	}
}

const dotAbove = 0x307

// segment normalises b, one letter with its marks, and adds the result to out. from is the offset of b in the text.
func (o *run) segment(b []byte, from int) {
	o.runes = o.runes[:0]
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if !ignored(r) {
			o.runes = append(o.runes, r)
		}
		i += n
	}
	is := []byte(string(o.runes))
	if len(o.runes) > mostMarks {
		is = inOrder(is)
	} else {
		is = norm.NFKC.Bytes(is)
		is = norm.NFKC.Bytes(foldAll(is))
	}
	dotted := false
	for i := 0; i < len(is); {
		r, n := utf8.DecodeRune(is[i:])
		if r != dotAbove || !dotted {
			o.out = append(o.out, is[i:i+n]...)
		}
		dotted = r == 'i'
		i += n
	}
	o.pieces = append(o.pieces, piece{len(o.out), from, from + len(b)})
}

// foldsToSeveral reports whether case folding makes several letters of one letter, which unicode.ToLower cannot do.
func foldsToSeveral(r rune) bool {
	switch {
	case r == 0xdf, r == 0x149, r == 0x1f0, r == 0x345, r == 0x390, r == 0x3b0, r == 0x587, r >= 0x1e96 && r <= 0x1e9e,
		r >= 0x1f50 && r <= 0x1ffc, r >= 0xfb00 && r <= 0xfb17:
		return true
	}
	return false
}

// foldAll returns a text case folded.
func foldAll(b []byte) []byte {
	out, several := make([]byte, 0, len(b)), false
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		several = several || foldsToSeveral(r)
		out = utf8.AppendRune(out, fold(r))
		i += n
	}
	if several {
		out = cases.Fold().Bytes(out)
	}
	return out
}

// inOrder returns a form of a letter with more than mostMarks marks: decomposed, case folded, and with the marks
// sorted by their combining classes, so that the form does not depend on the order in which marks of different classes
// are written.
func inOrder(b []byte) []byte {
	var apart []byte
	for range 2 { // folding may give a letter with marks
		apart = apart[:0]
		for i := 0; i < len(b); {
			_, n := utf8.DecodeRune(b[i:])
			apart = append(apart, norm.NFKD.Bytes(b[i:i+n])...) // each rune alone
			i += n
		}
		b = foldAll(apart)
	}
	type letter struct {
		class uint8
		bytes []byte
	}
	var list []letter
	for i := 0; i < len(b); {
		_, n := utf8.DecodeRune(b[i:])
		list = append(list, letter{norm.NFKD.Properties(b[i:]).CCC(), b[i : i+n]})
		i += n
	}
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].class > 0 {
			j++
		}
		slices.SortStableFunc(list[i:j], func(x, y letter) int { return int(x.class) - int(y.class) })
		i = j + 1
	}
	out := make([]byte, 0, len(b))
	for _, l := range list {
		out = append(out, l.bytes...)
	}
	return out
}

// words passes to sink the words of the text that is normalised so far, except the last one.
func (o *run) words(sink Sink) {
	p, c := 0, 0
	for i := 0; i < len(o.out); {
		if c < len(o.splits) && o.splits[c] == i {
			o.end(sink)
			c++
		}
		for o.pieces[p].end <= i {
			p++
		}
		x, y := o.pieces[p].from, o.pieces[p].to
		r, n := utf8.DecodeRune(o.out[i:])
		i += n
		o.take(r, kindOf(r, n), x, y, sink)
	}
	o.out, o.pieces, o.splits = o.out[:0], o.pieces[:0], o.splits[:0]
}

// take adds the folded rune r of class k to the current word, and passes to sink the words that r ends. r was made of
// the bytes from x to y of the text.
func (o *run) take(r rune, k class, x, y int, sink Sink) {
	switch k {
	case nothing:
		return
	case between, symbol:
		o.end(sink)
		return
	case letter:
		if o.at >= 0 {
			o.end(sink)
		}
		if len(o.word) == 0 {
			o.from = x
		}
	case mark:
		if len(o.word) == 0 {
			return
		}
	case unspaced:
		if o.at < 0 {
			o.end(sink)
			o.at, o.from = 0, x
			break
		}
		o.visit(sink)
		if o.at > 0 {
			o.from = o.mid
		}
		o.word = o.word[:copy(o.word, o.word[o.at:])]
		o.at, o.mid = len(o.word), x
	}
	o.word = utf8.AppendRune(o.word, r)
	o.last = y
}

// visit passes the current word to sink.
func (o *run) visit(sink Sink) {
	switch {
	case o.at > 0:
		sink.Char(o.word, o.at, o.from, o.mid, o.last)
	case o.at == 0:
		sink.Char(o.word, 0, o.from, o.from, o.last)
	case len(o.word) > 0:
		sink.Word(o.word, o.from, o.last)
	}
}

// end passes the last word to sink, and clears it.
func (o *run) end(sink Sink) {
	o.visit(sink)
	o.word, o.at = o.word[:0], -1
}
