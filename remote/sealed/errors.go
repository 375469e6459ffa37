package sealed

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
)

// ErrForged is matched by all errors about missing or wrong signatures, which mean: it is not proven that the copy is
// the requested one.
var ErrForged = errors.New("not proven to be the copy of this store")

// SignerError reports that a part of a copy is signed by a machine whose key is not among the keys that the caller
// trusts. The error matches ErrForged and errs.ErrInvalid.
type SignerError struct {
	Place  string
	Signer ed25519.PublicKey
}

// Error returns the message, in one line.
func (e *SignerError) Error() string {
	return fmt.Sprintf("%s: %v: the copy is signed with the key %s, which is not among the given keys -> if memctl "+
		"remote add printed this key, "+
		"name it: --signer %s", e.Place, ErrForged, FormatKey(e.Signer), FormatKey(e.Signer))
}

// Unwrap makes the error match ErrForged and errs.ErrInvalid.
func (e *SignerError) Unwrap() []error { return []error{ErrForged, errs.ErrInvalid} }

// PlainError reports that a copy is not encrypted although it must be sealed (encrypted and signed). The error matches
// ErrForged and errs.ErrInvalid.
type PlainError struct{ Place string }

// Error returns the message, in one line.
func (e *PlainError) Error() string {
	return fmt.Sprintf("%s: %v: the copy is not sealed, but a sealed copy was requested", e.Place, ErrForged)
}

// Unwrap makes the error match ErrForged and errs.ErrInvalid.
func (e *PlainError) Unwrap() []error { return []error{ErrForged, errs.ErrInvalid} }

// OlderError reports that a copy ends before a position that it is known to have reached earlier. The error matches
// ErrForged and errs.ErrInvalid.
type OlderError struct {
	Place string
	Known Known
	Head  Known
}

// Error returns the message, in one line.
func (e *OlderError) Error() string {
	return fmt.Sprintf("%s: %v: the copy ends at %s, but had reached %s before: the place shows an older state, or "+
		"has lost entries", e.Place, ErrForged, e.Head, e.Known)
}

// Unwrap makes the error match ErrForged and errs.ErrInvalid.
func (e *OlderError) Unwrap() []error { return []error{ErrForged, errs.ErrInvalid} }

// Known is a position that a copy is known to have reached.
type Known struct {
	Epoch    uint64
	Position uint64
}

// String returns the position in the form that ParseKnown reads.
func (k Known) String() string { return fmt.Sprintf("%d:%d", k.Epoch, k.Position) }

// ParseKnown parses a position in the form EPOCH:POSITION, two decimal numbers.
func ParseKnown(text string) (k Known, err error) {
	var rest string
	if n, err := fmt.Sscanf(text, "%d:%d%s", &k.Epoch, &k.Position, &rest); n != 2 || k.Epoch == 0 || err == nil {
		return Known{}, fmt.Errorf("%q is not a position of a copy: %w -> write EPOCH:POSITION, as memctl remote "+
			"status shows it", text, errs.ErrInvalid)
	}
	return k, nil
}

// Check returns an *OlderError if head, the end of a copy, is before the position k.
func (k Known) Check(place string, head *remote.Position) error {
	if at := (Known{head.Epoch, head.At.LSN}); at.Epoch < k.Epoch || at.Epoch == k.Epoch && at.Position < k.Position {
		return &OlderError{Place: place, Known: k, Head: at}
	}
	return nil
}

const keyPrefix = "ed25519-"

// FormatKey returns a public key as text: ed25519- and 43 characters of base64url.
func FormatKey(key ed25519.PublicKey) string {
	return keyPrefix + base64.RawURLEncoding.EncodeToString(key)
}

// ParseKey parses a public key in the form that FormatKey returns.
func ParseKey(text string) (ed25519.PublicKey, error) {
	rest, ok := strings.CutPrefix(text, keyPrefix)
	b, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if !ok || err != nil || len(b) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%q is not the key of a machine: %w -> write the key, ed25519-…, as memctl remote add "+
			"has printed it", text, errs.ErrInvalid)
	}
	return b, nil
}
