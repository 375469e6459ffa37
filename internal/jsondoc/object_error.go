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

// SyntaxError reports that a text is not a valid document. Offset is the offset of the first wrong byte. If the text is
// from a file, the reader of the file puts the error into an *errs.CorruptionError with Path and Offset. If the text is
// from a caller, the error matches errs.ErrInvalid.
type SyntaxError struct {
	Offset    int64  // byte offset in the document
	Truncated bool   // the text is valid as far as it goes, and ends too early
	Pointer   string // the member with the error, as a JSON pointer (RFC 6901), "" when unknown
	Err       error  // what is wrong
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

// ErrMergeConflict is the cause of the error for a document in which git has left both sides of a merge.
var ErrMergeConflict = errors.New("the file contains conflict markers of a merge; resolve the conflict")

// Causes of a SyntaxError that a user can fix.
var (
	errEmpty         = errors.New("the document is empty")
	errZeros         = errors.New("the file starts with zero bytes, as after a power loss")
	errByteOrderMark = errors.New("the file starts with a byte order mark; save it as UTF-8 without one")
	errTrailing      = errors.New("data after the end of the document")
	errNotObject     = errors.New("the document is not a JSON object")
	errDuplicate     = errors.New("duplicate member")
)

// syntaxError converts an error of package jsontext to a SyntaxError. src is the text that was read; it begins at the
// byte base of the document.
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

// conflictMarker reports whether the line of src with offset off, at which reading stopped, is a conflict marker
// of git.
func conflictMarker(src []byte, off int64) bool {
	if off < 0 || off > int64(len(src)) {
		return false
	}
	line := src[bytes.LastIndexByte(src[:off], '\n')+1:]
	for _, m := range []string{"<<<<<<<", "=======", ">>>>>>>"} {
		if bytes.HasPrefix(line, []byte(m)) {
			return true
		}
	}
	return false
}
