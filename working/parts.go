package working

import (
	"bytes"
	"fmt"

	"github.com/varve-db/varve/errs"
)

// How many values, notes, checkpoints and changes a document or an entry may have: a text of n bytes at most
// fewParts + n/partBytes. Each takes up to 700 bytes in memory while it is decoded, and has as few as 3 in a
// text that was made to do so; none that Encode writes has fewer than partBytes.
const (
	fewParts  = 1 << 16
	partBytes = 32
	partDepth = 3 // of their objects; what is deeper is mostly a user's value, which is not decoded
)

// checkParts refuses a text with more parts than it can have, before anything is made of them.
func checkParts(text []byte) error {
	most := fewParts + len(text)/partBytes
	if bytes.Count(text, []byte{'{'}) <= most && bytes.Count(text, []byte{'\n'}) <= most {
		return nil
	}
	parts, lines, depth := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i)
		case '{', '[':
			if depth++; depth <= partDepth && text[i] == '{' {
				parts++
			}
		case '}', ']':
			depth--
		case '\n':
			if depth == 0 {
				lines++
			}
		}
		if parts > most || lines > most {
			return &errs.FieldError{Limit: fmt.Sprintf("%d values, notes, checkpoints and changes in %d bytes", most, len(text)),
				Err: errs.ErrTooLarge}
		}
	}
	return nil
}

// endOfString returns the offset of the quote that closes the string opened at i.
func endOfString(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
