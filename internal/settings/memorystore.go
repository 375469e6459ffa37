package settings

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Limits of a MemoryStoreConfig, in characters.
const (
	MostStoreName        = 255
	MostStoreDescription = 1024
	MostStorePairs       = 16
	MostStoreKey         = 64
	MostStoreValue       = 512
)

// StoreID is the prefix of the ids of memory stores.
const StoreID = "memstore_"

// storeIDLength is the number of letters and digits after StoreID in an id.
const storeIDLength = 32

// IsStoreID reports whether a text has the form of the id of a memory store.
func IsStoreID(id string) bool {
	rest, ok := strings.CutPrefix(id, StoreID)
	return ok && len(rest) == storeIDLength && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// validate returns the first invalid field as an *errs.FieldError, or nil.
func (m *MemoryStoreConfig) validate() error {
	if m == nil {
		return nil
	}
	bad := func(field, value string, err error) error {
		return &errs.FieldError{Field: Name + " memory_store." + field, Value: human.Quote(value), Err: err}
	}
	if !IsStoreID(m.ID) {
		return bad("id", m.ID, fmt.Errorf("must be %s and %d letters and digits", StoreID, storeIDLength))
	}
	if field, err := m.Check(); err != nil {
		return bad(field, "", err)
	}
	return nil
}

// Check checks the fields Name, Description and Metadata. It returns the JSON name of the first invalid field, and the
// reason as an error; "" and nil if all three are valid.
func (m *MemoryStoreConfig) Check() (field string, err error) {
	switch n := utf8.RuneCountInString(m.Name); {
	case n < 1 || n > MostStoreName:
		return "name", fmt.Errorf("must have 1 to %d characters, not %d", MostStoreName, n)
	case strings.ContainsFunc(m.Name, unicode.IsControl):
		return "name", errors.New("must have no control characters")
	}
	if n := utf8.RuneCountInString(m.Description); n > MostStoreDescription {
		return "description", fmt.Errorf("must have at most %d characters, not %d", MostStoreDescription, n)
	}
	if n := len(m.Metadata); n > MostStorePairs {
		return "metadata", fmt.Errorf("must have at most %d pairs, not %d", MostStorePairs, n)
	}
	for key, value := range m.Metadata {
		if n := utf8.RuneCountInString(key); n < 1 || n > MostStoreKey {
			return "metadata", fmt.Errorf("a key must have 1 to %d characters, not %d", MostStoreKey, n)
		}
		if n := utf8.RuneCountInString(value); n > MostStoreValue {
			return "metadata", fmt.Errorf("the value of %s must have at most %d characters, not %d", human.Quote(key),
				MostStoreValue, n)
		}
	}
	return "", nil
}
