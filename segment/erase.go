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
	Keyed   int // damaged entries whose header is sound, with a wanted key: their bytes are Unknown
	Others  int // entries that stay
	Unknown int // bytes outside of sound frames that were not 0
}

// EraseIn removes some entries from a piece of a log, which begins at a position: their frames are
// erased, and bytes that are not a sound frame, whose owner cannot be determined, become zeros; unknown,
// which may be nil, is called with them before. For a damaged frame with a sound header wanted gets
// the key and no value. The last frame of a piece may lack zeros at its end.
func (g Geometry) EraseIn(b []byte, at LSN, wanted func(at LSN, key string, value []byte) bool,
	unknown func(b []byte)) (found Erased) {
	clean := 0 // up to where b was gone through
	clearTo := func(off int) {
		if n := off - clean - bytes.Count(b[clean:off], zeros[:1]); n > 0 {
			found.Unknown += n
			if unknown != nil {
				unknown(b[clean:off])
			}
			clear(b[clean:off])
		}
	}
	for off := 0; off+HeaderSize <= len(b); {
		h, payload, key, value, ok := g.frameIn(b[off:], at+LSN(off))
		if !ok {
			// The header alone is sound: the key, which may be damaged, is the best that is known.
			if n := int(h.KeyLen); n > 0 && n <= len(payload) && wanted(at+LSN(off), string(payload[:n]), nil) {
				found.Keyed++
			}
			off += 8
			continue
		}
		end := min(off+HeaderSize+len(payload), len(b))
		switch {
		case len(key) > 0 && wanted(h.LSN, string(key), value):
			if found.Wanted++; end-off < HeaderSize+len(payload) {
				clear(b[off:end]) // an erased frame would not be whole
			} else {
				h.Erase(b[off+HeaderSize : end])
			}
		case len(key) > 0:
			found.Others++
		}
		clearTo(off)
		clean = end
		off = min(off+int(h.Size()), len(b))
	}
	clearTo(len(b))
	return found
}

// frameIn is the sound frame at the beginning of bytes, which may lack zeros at its end.
func (g Geometry) frameIn(b []byte, at LSN) (h Header, payload, key, value []byte, ok bool) {
	if !MayBeHeader(b, at) {
		return h, nil, nil, nil, false
	}
	h, err := g.ParseHeader(b, at)
	if err != nil {
		return Header{}, nil, nil, nil, false
	}
	payload = b[HeaderSize:]
	if lacks := int(h.Length) - len(payload); lacks > 0 {
		payload = append(bytes.Clone(payload), make([]byte, lacks)...)
	}
	payload = payload[:h.Length]
	key, value, err = h.Check(payload)
	return h, payload, key, value, err == nil
}
