package jsondoc

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

const (
	// Extension is the file name extension of all JSON documents.
	Extension = ".json"
	// MaxID is the default maximum length of an id in bytes. config.json can set another maximum.
	MaxID = 1024

	maxPlain = 100 // maximum bytes of an id that is used as a name unchanged
	maxSlug  = 60  // maximum bytes of the readable part of every other name
	hashLen  = 26  // base32 characters of the id's sha256: 130 bits
)

// FileName returns the file name of the document with this id, including Extension.
//
//	[a-z0-9._-]{1,100}, no dot at either end, no device name     <id>.json
//	every other id                            <slug ≤ 60>~<26 base32>.json
//
// Two ids never get the same name, also where the file system folds case or normalises Unicode: every
// name is lower-case ASCII, a plain name has no "~", and the others have 130 bits of the id's sha256.
// Any bytes in an id are safe: a name never contains a separator and is never "." or "..".
func FileName(id string) string {
	if PlainName(id) {
		return id + Extension
	}
	sum := sha256.Sum256([]byte(id))
	hash := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))
	return Slug(id, maxSlug) + "~" + hash[:hashLen] + Extension
}

// hashedName matches the names that FileName returns for ids that are not plain.
var hashedName = regexp.MustCompile(`^[a-z0-9._-]{0,80}~[a-z2-7]{26}\.json$`)

// IsFileName reports whether FileName returns this name for some id.
func IsFileName(name string) bool {
	stem, ok := strings.CutSuffix(name, Extension)
	return ok && PlainName(stem) || hashedName.MatchString(name)
}

// CheckID returns an error for an id that is empty, not UTF-8, or longer than limit bytes. If limit is 0, the limit is
// MaxID. field is the name of the id in the error. All other ids are valid, even with control characters, because file
// names do not depend on them and JSON can represent them.
func CheckID(field, id string, limit int) error {
	if limit <= 0 {
		limit = MaxID
	}
	switch {
	case id == "":
		return &errs.FieldError{Field: field, Limit: fmt.Sprintf("1 to %d bytes", limit),
			Err: errors.New("an id must not be empty")}
	case len(id) > limit:
		return &errs.FieldError{Field: field, Value: human.Quote(id), Limit: fmt.Sprintf("%d bytes", limit),
			Err: fmt.Errorf("%w: the id has %d bytes", errs.ErrTooLarge, len(id))}
	case !utf8.ValidString(id):
		return &errs.FieldError{Field: field, Value: human.Quote(id), Err: errors.New("the id is not valid UTF-8")}
	}
	return nil
}

// CheckDocumentID returns an error if id, the id of a document, is not valid (see CheckID), or if want is not "" and
// id is not equal to want. If want is "" and optional is true, id may be "".
func CheckDocumentID(field, id, want string, optional bool, limit int) error {
	switch {
	case id == "" && optional && want == "":
		return nil
	case want != "" && id != want:
		return &errs.FieldError{Field: field, Value: human.Quote(id),
			Err: fmt.Errorf("the document should have the id %s", human.Quote(want))}
	}
	return CheckID(field, id, limit)
}

// PlainName reports whether the file name of this id is the id itself and Extension.
func PlainName(id string) bool {
	if len(id) == 0 || len(id) > maxPlain || id[0] == '.' || id[len(id)-1] == '.' {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !slugByte(c) && c != '.' && c != '_' {
			return false
		}
	}
	return !deviceName(id)
}

func slugByte(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' }

// deviceName reports whether Windows would open a device instead of a file with this name. Only the part before the
// first dot counts. com0 and lpt0 are reserved too (Microsoft, "Naming Files, Paths, and Namespaces").
func deviceName(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(stem) == 4 && (stem[:3] == "com" || stem[:3] == "lpt") && '0' <= stem[3] && stem[3] <= '9'
}

// Slug returns a readable form of a text, not longer than limit bytes: ASCII letters in lower case, digits and "_".
// Each run of other characters becomes one "-". A text that has only other characters becomes "id". A slug has no dot,
// because "con.txt" would be the name of a device on Windows.
func Slug(id string, limit int) string {
	b := make([]byte, 0, limit)
	for i := 0; i < len(id) && len(b) < limit; i++ {
		c := id[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if !slugByte(c) && c != '_' {
			c = '-'
		}
		if c == '-' && (len(b) == 0 || b[len(b)-1] == '-') {
			continue
		}
		b = append(b, c)
	}
	if s := strings.Trim(string(b), "-"); s != "" {
		return s
	}
	return "id"
}
