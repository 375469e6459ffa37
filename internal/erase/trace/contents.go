package trace

import (
	"bytes"
	"encoding/binary"
)

// contents are byte sequences of at least pieceSize bytes each that are searched for in files. A single pass over a
// file finds all of them: a hundred versions of a memory have 800 sequences.
type contents struct {
	pieces map[[pieceSize]byte][][]byte // the sequences, by their first pieceSize bytes
	// A bit for the first 8 bytes of each sequence, so that most places are skipped without the map.
	may [1 << 10]uint64
}

func (c *contents) isEmpty() bool { return len(c.pieces) == 0 }

// bitOf returns the bit of contents.may that stands for the first 8 bytes of b: the index of the word in may, and the
// mask of the bit in that word.
func bitOf(b []byte) (word, bit uint64) {
	h := binary.LittleEndian.Uint64(b) * 0x9e3779b97f4a7c15 >> 48
	return h / 64, 1 << (h % 64)
}

func (c *contents) add(piece []byte) {
	first := [pieceSize]byte(piece)
	for _, p := range c.pieces[first] {
		if bytes.Equal(p, piece) {
			return
		}
	}
	if c.pieces == nil {
		c.pieces = map[[pieceSize]byte][][]byte{}
	}
	c.pieces[first] = append(c.pieces[first], piece)
	word, bit := bitOf(piece)
	c.may[word] |= bit
}

// foundIn reports whether b contains one of the sequences.
func (c *contents) foundIn(b []byte) bool {
	for ; len(b) >= pieceSize; b = b[1:] {
		if word, bit := bitOf(b); c.may[word]&bit == 0 {
			continue
		}
		for _, p := range c.pieces[[pieceSize]byte(b)] {
			if bytes.HasPrefix(b, p) {
				return true
			}
		}
	}
	return false
}
