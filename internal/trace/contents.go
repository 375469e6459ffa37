package trace

import (
	"bytes"
	"encoding/binary"
)

// contents are pieces of at least pieceSize bytes, found in one pass over the bytes that may have them
// however many there are: a hundred versions of a memory have 800.
type contents struct {
	pieces map[uint64][][]byte // by their first 8 bytes
	may    [1 << 10]uint64     // a bit for each, so that most places are passed without the map
}

func (c *contents) none() bool { return len(c.pieces) == 0 }

// bitOf is the place in may of what begins with 8 bytes.
func bitOf(first uint64) (word, bit uint64) {
	h := first * 0x9e3779b97f4a7c15 >> 48
	return h / 64, 1 << (h % 64)
}

func (c *contents) add(piece []byte) {
	first := binary.LittleEndian.Uint64(piece)
	for _, p := range c.pieces[first] {
		if bytes.Equal(p, piece) {
			return
		}
	}
	if c.pieces == nil {
		c.pieces = map[uint64][][]byte{}
	}
	c.pieces[first] = append(c.pieces[first], piece)
	word, bit := bitOf(first)
	c.may[word] |= bit
}

// in says whether bytes have one of them.
func (c *contents) in(b []byte) bool {
	for ; len(b) >= pieceSize; b = b[1:] {
		first := binary.LittleEndian.Uint64(b)
		if word, bit := bitOf(first); c.may[word]&bit == 0 {
			continue
		}
		for _, p := range c.pieces[first] {
			if bytes.HasPrefix(b, p) {
				return true
			}
		}
	}
	return false
}
