package text

// Each calls word for each case-folded word of a script with spaces, and char for each character of a script without
// spaces: pair[at:] is the character and pair[:at] the one adjoining it before; at is 0 if there is none. The arguments
// are valid during the call only. Each returns buf, which it may have grown.
func Each(b []byte, buf []byte, word func(w []byte), char func(pair []byte, at int)) []byte {
	return tokenise(b, &each{onWord: word, onChar: char}, buf)
}

type each struct {
	onWord func([]byte)
	onChar func([]byte, int)
	low    []byte
}

func (e *each) word(w []byte) { e.onWord(w) }

func (e *each) ascii(w []byte) {
	e.low = folded(e.low[:0], w)
	e.onWord(e.low)
}

func (e *each) char(pair []byte, off int) { e.onChar(pair, off) }

func folded(dst, w []byte) []byte {
	for _, b := range w {
		dst = append(dst, lower[b])
	}
	return dst
}
