package jsondoc

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// AppendDocument appends the object as the content of a file: indent 2, a line feed at the end.
func (o *Object) AppendDocument(dst []byte) []byte {
	return append(o.Append(dst, 0), '\n')
}

// Append appends the object to dst as the value of a member, indented for the given level.
func (o *Object) Append(dst []byte, level int) []byte {
	if len(o.members) == 0 {
		return append(dst, '{', '}')
	}
	dst = append(dst, '{')
	for i, m := range o.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendNewline(dst, level+1)
		if m.quoted != nil {
			dst = append(dst, m.quoted...)
		} else {
			dst = appendQuoted(dst, m.Name)
		}
		dst = append(dst, ':', ' ')
		dst = append(dst, m.Value...)
	}
	return append(AppendNewline(dst, level), '}')
}

const blanks = "                                                                "

// AppendNewline appends a line feed and the indentation of the given level.
func AppendNewline(dst []byte, level int) []byte {
	dst = append(dst, '\n')
	n := 2 * level
	for n > len(blanks) {
		dst, n = append(dst, blanks...), n-len(blanks)
	}
	return append(dst, blanks[:n]...)
}

// AppendString appends s in the form of RFC 8785: it escapes only the characters that JSON requires to be escaped. If s
// is not UTF-8, the error is a *errs.FieldError without a field (see InField).
func AppendString(dst []byte, s string) ([]byte, error) {
	n := plainPrefix(s)
	if n == len(s) {
		return append(append(append(dst, '"'), s...), '"'), nil
	}
	if !utf8.ValidString(s[n:]) {
		return dst, &errs.FieldError{Value: human.Quote(s), Err: fmt.Errorf("not valid UTF-8 at byte %d", invalidAt(s))}
	}
	return appendQuoted(dst, s), nil
}

func appendQuoted(dst []byte, s string) []byte {
	return append(AppendEscaped(append(dst, '"'), s), '"')
}

// AppendEscaped appends the content of a string, without the quotes, in the form of RFC 8785. s must be valid UTF-8.
func AppendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	from := 0
	for i := plainPrefix(s); i < len(s); {
		c := s[i]
		i++
		if c >= utf8.RuneSelf {
			continue
		}
		if plain(c) {
			i += plainPrefix(s[i:])
			continue
		}
		dst = append(dst, s[from:i-1]...)
		from = i
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, s[from:]...)
}

// plain reports whether an ASCII byte is written unescaped in a JSON string.
func plain(c byte) bool { return c >= ' ' && c != '"' && c != '\\' }

// plainPrefix returns the number of bytes at the beginning of s that are ASCII and need no escape. It compares eight
// bytes at once, which is three times as fast as comparing single bytes. The speed matters because every put checks all
// of its text.
func plainPrefix(s string) int {
	const (
		ones = 0x0101010101010101
		tops = 0x8080808080808080
	)
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		quote, slash := w^ones*'"', w^ones*'\\'
		// (x-ones)&^x has a top bit if a byte of x is 0, (w-ones*' ')&^w if one is below ' '.
		if (w|(w-ones*' ')&^w|(quote-ones)&^quote|(slash-ones)&^slash)&tops != 0 {
			break
		}
	}
	for i < len(s) && s[i] < utf8.RuneSelf && plain(s[i]) {
		i++
	}
	return i
}

func invalidAt(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(s)
}

// AppendFloat appends f in the form of RFC 8785: the shortest digits that read back as f with the given number of bits
// (32 or 64), and with an exponent below 1e-6 and from 1e21 on. It differs from RFC 8785 in two points: it keeps the
// sign of zero, and if the digits look like an exact integer but are not exact (beyond 2^53), it writes them with an
// exponent, so that Number does not read them as an exact integer. NaN and the infinities are errors, because JSON has
// no such numbers.
func AppendFloat(dst []byte, f float64, bits int) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, &errs.FieldError{Value: strconv.FormatFloat(f, 'g', -1, bits),
			Err: errors.New("JSON has no NaN and no infinity")}
	}
	abs := math.Abs(f)
	if abs == 0 || 1e-6 <= abs && abs < 1e21 {
		from := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, bits)
		if abs < 1<<53 || exactInteger(dst[from:], f) {
			return dst, nil
		}
		dst = dst[:from]
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, bits)
	if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' { // e-07 is e-7
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst, nil
}

// InField returns err with name prepended to the field, if err is an *errs.FieldError. It returns any other error as
// an *errs.FieldError with the field name.
func InField(name string, err error) error {
	var f *errs.FieldError
	if !errors.As(err, &f) {
		return &errs.FieldError{Field: name, Err: err}
	}
	g := *f
	g.Field = name + g.Field
	return &g
}

// unquote returns the content of a JSON string that has been checked.
func unquote(raw []byte) string {
	if body := raw[1 : len(raw)-1]; !hasEscape(body) {
		return string(body)
	}
	b, _ := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw)
	return string(b)
}
