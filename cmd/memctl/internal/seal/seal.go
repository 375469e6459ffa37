package seal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"filippo.io/age"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
)

// Recipients returns a function that encrypts to all of the recipients; see varve.BackupOptions.Seal. recipients
// has their public keys as text. The errors do not contain these texts, because a user may have passed a secret
// identity by mistake.
func Recipients(recipients []string) (func(io.Writer) (io.WriteCloser, error), error) {
	var list []age.Recipient
	seen := map[string]bool{}
	for i, text := range recipients {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "AGE-SECRET-KEY-") {
			return nil, fmt.Errorf("recipient %d is an identity, which is secret: %w → give the public key of the "+
				"identity, age1…, and make a new identity if others could read this one on the command line", i+1,
				varve.ErrInvalid)
		}
		found, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("recipient %d is not a public key of age (age1…): %w", i+1, varve.ErrInvalid)
		}
		if seen[text] {
			return nil, fmt.Errorf("recipient %d is given twice: %w", i+1, varve.ErrInvalid)
		}
		seen[text] = true
		list = append(list, found[0])
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no recipient is given: %w", varve.ErrInvalid)
	}
	// Whether the recipients go together is known when they are used.
	if _, err := age.Encrypt(io.Discard, list...); err != nil {
		return nil, fmt.Errorf("%w: %w", varve.ErrInvalid, err)
	}
	return func(w io.Writer) (io.WriteCloser, error) { return age.Encrypt(w, list...) }, nil
}

// Enough returns an error if there is exactly one recipient and single is false, or if single is true and the number
// of recipients is not 1. noun names the thing that is sealed, such as a copy.
func Enough(recipients []string, single bool, noun string) error {
	switch n := len(recipients); {
	case single && n == 0:
		return errors.New("--single-recipient needs --recipient")
	case single && n > 1:
		return fmt.Errorf("%d recipients are given: omit --single-recipient", n)
	case n == 1 && !single:
		return fmt.Errorf("the %s has only one recipient, and cannot be decrypted if its identity is lost: give a "+
			"second --recipient, or --single-recipient if the identity is kept in two places", noun)
	}
	return nil
}

// Identities returns a function that decrypts with the identities in a file; see varve.Unseal. It returns nil if file
// is "".
func Identities(file string) (varve.Unseal, error) {
	if file == "" {
		return nil, nil
	}
	f, err := vfs.OpenGiven(file)
	if err != nil {
		return nil, fmt.Errorf("reading the identity: %w", err)
	}
	defer f.Close()
	ids, err := age.ParseIdentities(f)
	if err != nil { // the error of age has a number of a line, and nothing of the file
		return nil, fmt.Errorf("%s has no identity of age (AGE-SECRET-KEY-…): %w: %w → an identity that is encrypted must "+
			"be decrypted first (age -d)", file, varve.ErrInvalid, err)
	}
	return func(sealed io.ReaderAt, size int64) (io.ReaderAt, int64, error) {
		below := &watched{ReaderAt: sealed}
		plain, n, err := age.DecryptReaderAt(below, size, ids...)
		if no := (*age.NoIdentityMatchError)(nil); errors.As(err, &no) {
			return nil, 0, fmt.Errorf("%w: no identity in %s can decrypt the sealed file", varve.ErrInvalid, file)
		}
		if err != nil && below.failed.Load() {
			return nil, 0, fmt.Errorf("reading the sealed file: %w", err)
		}
		if err != nil && !errors.Is(err, varve.ErrCorrupt) {
			err = &varve.CorruptionError{Path: "the sealed file", Offset: -1, Err: err}
		}
		return plain, n, err
	}, nil
}

// watched is a file that records whether reading it has failed.
type watched struct {
	io.ReaderAt
	failed atomic.Bool
}

func (w *watched) ReadAt(b []byte, off int64) (int, error) {
	n, err := w.ReaderAt.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		w.failed.Store(true)
	}
	return n, err
}
