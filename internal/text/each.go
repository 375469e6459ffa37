package text

// Each visits the words of b, case folded: word those of scripts with spaces, char each character of
// the others, from at on in pair, behind the one that adjoins it, where one does (at is 0 else). What is
// given is valid during the call. It returns buf, grown.
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

func (e *each) char(pair []byte, at int) { e.onChar(pair, at) }

func folded(dst, w []byte) []byte {
	for _, b := range w {
		dst = append(dst, lower[b])
	}
	return dst
}
