package working

import (
	"bytes"
	"fmt"

	"github.com/varve-db/varve/errs"
)

// Limits for the number of values, notes, checkpoints and changes in a document or an entry: a text of n bytes may
// have fewParts + n/partBytes. Each of them takes up to 700 bytes of memory when it is decoded. Encode writes at least
// partBytes for each, but a text that is made to exhaust memory needs only 3 bytes for each.
const (
	fewParts  = 1 << 16
	partBytes = 32
	partDepth = 3 // nesting of the objects of these parts; deeper objects are in a user's value, which is not decoded
)

// checkParts returns an error if a text has more values, notes, checkpoints and changes than permitted. It does not
// decode them.
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
			return &errs.FieldError{Limit: fmt.Sprintf("%d values, notes, checkpoints and changes in a text of %d "+
				"bytes", most, len(text)),
				Err: errs.ErrTooLarge}
		}
	}
	return nil
}

// endOfString returns the offset of the quote that closes the JSON string whose opening quote is at i.
func endOfString(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
