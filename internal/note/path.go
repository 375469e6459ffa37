package note

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// The limits of a note.
const (
	MostSegments = 20       // maximum number of segments in a path
	MostPath     = 1024     // maximum number of bytes in a path
	MostBytes    = 16 << 20 // maximum number of bytes in a note
)

// CheckPath returns an error, a *errs.FieldError, if path is not a valid path of a note.
func CheckPath(path string) error {
	refuse := func(limit string, err error) error {
		return &errs.FieldError{Field: "path", Value: human.Quote(path), Limit: limit, Err: err}
	}
	switch {
	case path == "":
		return refuse("", errors.New("must not be empty"))
	case len(path) > MostPath:
		return refuse(fmt.Sprintf("%d bytes", MostPath), errs.ErrTooLarge)
	case !utf8.ValidString(path):
		return refuse("", errors.New("must be valid UTF-8"))
	case strings.ContainsFunc(path, refusedRune):
		return refuse("", errors.New("must not contain control, format, line or paragraph separator characters"))
	case !norm.NFC.IsNormalString(path):
		return refuse("", fmt.Errorf("must be in Unicode's normal form C: %s", human.Quote(norm.NFC.String(path))))
	}
	n := 0
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return refuse("", errors.New("must be relative, without a slash at its end and without empty, . and .. segments"))
		}
		n++
	}
	if n > MostSegments {
		return refuse(fmt.Sprintf("%d segments", MostSegments), errs.ErrTooLarge)
	}
	return nil
}

// refusedRune reports whether a character is not allowed in paths: control characters, format characters such
// as a zero width joiner or a byte order mark, and Unicode's line and paragraph separators.
func refusedRune(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// space is the namespace of the UUIDs of notes. It was generated for this purpose.
var space = uuid.MustParse("5a0ad6a4-2c0e-5d8c-9a3e-6f2b7c1d4e90")

// ID returns the id of a note that was created at a path: the UUID version 5 of the path (RFC 9562).
func ID(path string) string { return uuid.NewSHA1(space, []byte(path)).String() }
