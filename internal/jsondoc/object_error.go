package jsondoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// SyntaxError is the error for a text that is not a document, with the offset of the first wrong byte. A
// reader of a file puts it into an *errs.CorruptionError with Path and Offset; for a caller's input it
// matches errs.ErrInvalid.
type SyntaxError struct {
	Offset    int64  // byte offset in the document
	Truncated bool   // the text is valid up to its end, which comes too early
	Pointer   string // JSON pointer (RFC 6901) to the member, "" if unknown
	Err       error  // the cause
}

func (e *SyntaxError) Error() string {
	s := "invalid JSON at byte "
	if e.Truncated {
		s = "the JSON breaks off at byte "
	}
	s = fmt.Sprintf("%s%d", s, e.Offset)
	if e.Pointer != "" {
		s += " in " + human.Quote(e.Pointer)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *SyntaxError) Unwrap() []error {
	if e.Err == nil {
		return []error{errs.ErrInvalid}
	}
	return []error{errs.ErrInvalid, e.Err}
}

// ErrMergeConflict is the cause if git has left both sides of a merge in a document.
var ErrMergeConflict = errors.New("the file contains conflict markers of a merge; resolve the conflict")

// The causes that a user can fix, by name.
var (
	errEmpty         = errors.New("the document is empty")
	errZeros         = errors.New("the file starts with zero bytes, as after a power loss")
	errByteOrderMark = errors.New("the file starts with a byte order mark; save it as UTF-8 without one")
	errTrailing      = errors.New("data after the end of the document")
	errNotObject     = errors.New("the document is not a JSON object")
	errDuplicate     = errors.New("duplicate member")
)

// syntaxError translates an error of jsontext about src, which starts at byte base of the document.
func syntaxError(src []byte, base int64, err error) error {
	e := &SyntaxError{Offset: base, Err: err}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		e.Offset, e.Pointer, e.Err = base+syn.ByteOffset, string(syn.JSONPointer), syn.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		e.Offset, e.Truncated, e.Err = base+int64(len(src)), true, nil
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		e.Err = errDuplicate
	}
	// The action of a user, or a power loss, explains more than the character at which reading stopped.
	switch trimmed := bytes.TrimLeft(src, " \t\r\n"); {
	case len(trimmed) == 0:
		e.Err = errEmpty
	case trimmed[0] == 0:
		e.Err, e.Truncated = errZeros, false
	case bytes.HasPrefix(trimmed, []byte("\xef\xbb\xbf")):
		e.Err = errByteOrderMark
	case conflictMarker(src, e.Offset-base):
		e.Err = ErrMergeConflict
	}
	return e
}

// conflictMarker reports whether the line at which reading stopped is a conflict marker.
func conflictMarker(src []byte, at int64) bool {
	if at < 0 || at > int64(len(src)) {
		return false
	}
	line := src[bytes.LastIndexByte(src[:at], '\n')+1:]
	for _, m := range []string{"<<<<<<<", "=======", ">>>>>>>"} {
		if bytes.HasPrefix(line, []byte(m)) {
			return true
		}
	}
	return false
}
