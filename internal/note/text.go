package note

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// IsText reports whether bytes are a text: valid UTF-8 without NUL.
func IsText(data []byte) bool { return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data) }

// Replace returns data with the only occurrence of a text replaced. If the text does not occur exactly once, the error
// is a *errs.MatchError. Occurrences may overlap.
func Replace(data []byte, from, to string) ([]byte, error) {
	if from == "" {
		return nil, &errs.FieldError{Field: "text", Err: errs.ErrInvalid, Limit: "one byte or more"}
	}
	var lines []int
	count, first, line := 0, 0, 1
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(from))
		if i < 0 {
			break
		}
		line += bytes.Count(data[at:at+i], []byte("\n"))
		if count++; count == 1 {
			first = at + i
		}
		if len(lines) < matchLines {
			lines = append(lines, line)
		}
		if data[at+i] == '\n' {
			line++
		}
		at += i + 1
	}
	if count != 1 {
		return nil, &errs.MatchError{Text: from, Count: count, Lines: lines}
	}
	out := append(make([]byte, 0, len(data)-len(from)+len(to)), data[:first]...)
	return append(append(out, to...), data[first+len(from):]...), nil
}

// matchLines is the maximum number of occurrences whose lines a MatchError lists.
const matchLines = 1000

// Lines returns the number of lines in a text. If the text does not end with a line break, the text after the last
// line break counts as a line, too.
func Lines(data []byte) int {
	n := bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

// Insert returns data with text inserted after a line; line 0 means the beginning. If the line before the text has no
// line break, Insert adds one. It also adds a line break to the text if the text has none and other lines follow.
func Insert(data []byte, line int, text string) ([]byte, error) {
	if n := Lines(data); line < 0 || line > n {
		return nil, &errs.FieldError{Field: "line", Value: fmt.Sprint(line),
			Limit: fmt.Sprintf("0 to %s", human.Count(n, "line", "lines")), Err: errs.ErrInvalid}
	}
	at := 0
	for range line {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			at = len(data)
			break
		}
		at += i + 1
	}
	end := "\n"
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		end = "\r\n"
	}
	out := append(make([]byte, 0, len(data)+len(text)+2*len(end)), data[:at]...)
	if at > 0 && data[at-1] != '\n' && text != "" {
		out = append(out, end...)
	}
	out = append(out, text...)
	if text != "" && text[len(text)-1] != '\n' && at < len(data) {
		out = append(out, end...)
	}
	return append(out, data[at:]...), nil
}
