package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/jsondoc"
)

var errKeyText = errors.New("the key is not valid UTF-8")

// EncodeKey returns key as it is written between its quotes in a table; if no character needs an escape, it
// returns key itself. Tables are sorted by the bytes of this form.
func EncodeKey(key string) (string, error) {
	clean, ascii := true, true
	for i := 0; i < len(key); i++ {
		c := key[i]
		if c < 0x20 || c == '"' || c == '\\' {
			clean = false
		}
		if c >= utf8.RuneSelf {
			ascii = false
		}
	}
	if !ascii && !utf8.ValidString(key) {
		return "", &errs.FieldError{Field: "id", Value: human.Quote(key), Err: errKeyText}
	}
	if clean {
		return key, nil
	}
	return string(jsondoc.AppendEscaped(make([]byte, 0, len(key)+16), key)), nil
}

// appendDecoded appends the key whose encoded form is enc to dst. ok is false if EncodeKey cannot have written
// enc.
func appendDecoded(dst, enc []byte) (_ []byte, ok bool) {
	for i := 0; i < len(enc); i++ {
		c := enc[i]
		if c != '\\' {
			if c < 0x20 || c == '"' {
				return dst, false
			}
			dst = append(dst, c)
			continue
		}
		if i++; i == len(enc) {
			return dst, false
		}
		switch c = enc[i]; c {
		case '"', '\\':
		case 'b':
			c = '\b'
		case 't':
			c = '\t'
		case 'n':
			c = '\n'
		case 'f':
			c = '\f'
		case 'r':
			c = '\r'
		case 'u':
			if i+4 >= len(enc) || enc[i+1] != '0' || enc[i+2] != '0' {
				return dst, false
			}
			hi, lo := hexValue(enc[i+3]), hexValue(enc[i+4])
			c = hi<<4 | lo
			if hi > 1 || lo > 15 || c == '\b' || c == '\t' || c == '\n' || c == '\f' || c == '\r' {
				return dst, false
			}
			i += 4
		default:
			return dst, false
		}
		dst = append(dst, c)
	}
	return dst, true
}

// hexValue returns the value of a lower-case hex digit, 255 for any other byte.
func hexValue(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// keyEnd returns the index of the quote that ends the encoded key at the start of b, or -1 if there is no such quote.
func keyEnd(b []byte) int {
	for i := 0; ; {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return -1
		}
		i += j
		if !escaped(b[:i]) {
			return i
		}
		i++
	}
}

// escaped reports whether a byte that follows b is escaped, that is, whether b ends with an odd number of
// backslashes.
func escaped(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n&1 == 1
}

// commonPrefix returns the length of the common prefix of a and b.
func commonPrefix(a, b []byte) int {
	n, i := min(len(a), len(b)), 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// compareLine compares the encoded key at the start of line (after its opening quote) with k, and also returns the
// length of their common prefix.
func compareLine(line, k []byte) (order, shared int) {
	p := commonPrefix(line, k)
	switch {
	case p == len(line):
		return -1, p // no closing quote: the caller finds that the line is cut short
	case p == len(k):
		if line[p] == '"' {
			return 0, p
		}
		return 1, p
	// A closing quote ends a shorter key, which sorts first although ' ' and '!' are smaller than '"'.
	case line[p] == '"' && !escaped(k[:p]):
		return -1, p
	case line[p] < k[p]:
		return -1, p
	}
	return 1, p
}
