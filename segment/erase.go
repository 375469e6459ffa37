package segment

import (
	"bytes"
	"encoding/binary"
)

// KindErased is the kind that Check returns for a frame whose payload was erased. No header has it:
// the header of an erased frame is unchanged, and with it the chain.
const KindErased = 2

// erasedWord makes of a header's checksum the 8 bytes that an erased payload is
// filled with: no device invents them, as it does zeros.
const erasedWord = 0x4445534152455645 // "EVERASED"

// Erase overwrites the payload of a frame permanently. The frame stays in its place and in the
// chain; its key and its content cannot be determined any more.
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

// Erased is what EraseIn found in a piece of a log.
type Erased struct {
	Wanted  int // entries that were erased
	Others  int // entries that stay
	Unknown int // bytes outside of sound frames that were not 0
}

// EraseIn removes some entries from a piece of a log, which begins at a position: their frames are
// erased, and bytes that are not a sound frame, whose owner cannot be determined, become zeros.
func (g Geometry) EraseIn(b []byte, at LSN, wanted func(key string, value []byte) bool) (found Erased) {
	clean := 0 // up to where b was gone through
	unknown := func(off int) {
		found.Unknown += off - clean - bytes.Count(b[clean:off], zeros[:1])
		clear(b[clean:off])
	}
	for off := 0; off+HeaderSize <= len(b); {
		rest := b[off:]
		if !MayBeHeader(rest, at+LSN(off)) {
			off += 8
			continue
		}
		h, err := g.ParseHeader(rest, at+LSN(off))
		if err != nil || HeaderSize+int(h.Length) > len(rest) {
			off += 8
			continue
		}
		payload := rest[HeaderSize : HeaderSize+int(h.Length)]
		key, value, err := h.Check(payload)
		if err != nil {
			off += 8
			continue
		}
		switch {
		case len(key) > 0 && wanted(string(key), value):
			h.Erase(payload)
			found.Wanted++
		case len(key) > 0:
			found.Others++
		}
		unknown(off)
		off = min(off+int(h.Size()), len(b))
		clean = off
	}
	unknown(len(b))
	return found
}
