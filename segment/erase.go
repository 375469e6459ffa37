package segment

import (
	"bytes"
	"encoding/binary"
)

// KindErased is the kind that Check sets in a Header whose frame has an erased payload. It is never stored:
// the stored header of an erased frame is unchanged, so that the chain of checksums stays valid.
const KindErased = 2

// erasedWord, combined by XOR with the checksum in the header, gives the 8-byte pattern that fills an erased
// payload. A failing device may return zeros, but it does not return this pattern by accident.
const erasedWord = 0x4445534152455645 // the text "EVERASED" as a number

// Erase overwrites payload, the payload of h's frame, with the pattern of an erased frame. The
// frame keeps its position and its link in the chain; its key and its value are lost.
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

// Erased is the result of EraseIn: it has the numbers of the entries and bytes that EraseIn has found.
type Erased struct {
	Wanted  int // number of wanted entries, which were erased
	Keyed   int // number of damaged frames with an undamaged header and a wanted key; Unknown includes their bytes
	Others  int // number of other entries, which were kept
	Unknown int // number of nonzero bytes outside of undamaged frames
}

// EraseIn erases entries in b, a piece of a log that begins at position pos. It erases the frames for which wanted
// returns true. It also overwrites all bytes that are not part of an undamaged frame with zeros, because they may
// belong to a wanted entry. Before that, it passes these bytes to the function unknown, unless unknown is nil. If
// a frame is damaged but its header is not, wanted gets the key and a nil value. The padding of the last frame may
// be missing at the end of b.
func (g Geometry) EraseIn(b []byte, pos LSN, wanted func(at LSN, key string, value []byte) bool,
	unknown func(b []byte)) (found Erased) {
	clean := 0 // b is done up to this offset
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
		h, payload, key, value, ok := g.frameIn(b[off:], pos+LSN(off))
		if !ok {
			// Only the header is sound: its key, which may be damaged, is the best information
			// there is.
			if n := int(h.KeyLen); n > 0 && n <= len(payload) && wanted(pos+LSN(off), string(payload[:n]), nil) {
				found.Keyed++
			}
			off += 8
			continue
		}
		end := min(off+HeaderSize+len(payload), len(b))
		switch {
		case len(key) > 0 && wanted(h.LSN, string(key), value):
			if found.Wanted++; end-off < HeaderSize+len(payload) {
				clear(b[off:end]) // the frame is cut short, so it cannot become a complete erased frame
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

// frameIn returns the undamaged frame at the beginning of b, which is at the position pos of the log. ok is false if b
// does not begin with an undamaged frame. The padding of the frame may be missing at the end of b.
func (g Geometry) frameIn(b []byte, pos LSN) (h Header, payload, key, value []byte, ok bool) {
	if !MayBeHeader(b, pos) {
		return h, nil, nil, nil, false
	}
	h, err := g.ParseHeader(b, pos)
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
