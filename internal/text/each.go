package text

// Each passes the words of b to word and char, case folded and in order. It calls word for each word of a script with
// spaces, and char for each character of a script without spaces: pair[at:] is the character, and pair[:at] is the
// character that immediately precedes it, if that is of such a script too; otherwise at is 0. w and pair are valid
// during the call only. Each returns buf, which it may have enlarged, for the next call.
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
