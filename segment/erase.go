package segment

import "encoding/binary"

// KindErased is what Check says of a frame whose payload was erased. No header
// says it: that of an erased frame stays as it was, and with it the chain.
const KindErased = 2

// erasedWord makes of a header's checksum the 8 bytes that an erased payload is
// filled with: no device invents them, as it does zeros.
const erasedWord = 0x4445534152455645 // "EVERASED"

// Erase overwrites the payload of a frame for good. The frame stays in its place
// and in the chain; nobody can tell any more whose it was, or what it said.
func (h *Header) Erase(payload []byte) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], h.Sum^erasedWord)
	for i := range payload {
		payload[i] = word[i%8]
	}
}

func (h *Header) erased(payload []byte) bool {
	if len(payload) != int(h.Length) || len(payload) < 8 {
		return false
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], h.Sum^erasedWord)
	for i := range payload {
		if payload[i] != word[i%8] {
			return false
		}
	}
	return true
}
