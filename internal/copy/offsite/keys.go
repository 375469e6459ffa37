package offsite

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/sealed"
)

// Keys are the keys of a sealed copy that a machine keeps, in a file that only the user can read, beside the record of
// the copy's place. With these keys a program can add to the copy, but cannot open what was sent.
type Keys struct {
	Format     int      `json:"format"`
	Recipients []string `json:"recipients"` // public keys
	Chain      []byte   `json:"chain"`      // masks the chain hashes of marks
	Seed       []byte   `json:"seed"`       // seed of this machine's signing key; empty: this machine adds nothing yet
	Signers    []string `json:"signers"`    // public keys of the machines that have added to the copy, this one among them
}

const keysFormat = 1

// Sealer returns a function that encrypts to recipients.
type Sealer func(recipients []string) (sealed.Seal, error)

// Keys returns the keys of the copy. The error matches errs.ErrNotFound if the copy is not sealed.
func (p *Places) Keys() (k Keys, err error) {
	name := p.path("keys")
	if p.State == "" {
		return k, fmt.Errorf("reading the keys of the copy: %w", errs.ErrNotFound)
	}
	b, err := vfs.ReadFile(p.FS, name, 1<<20)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		if name = p.movedKeys(); name == "" {
			return k, fmt.Errorf("%s: %w", p.path("keys"), errs.ErrNotFound)
		}
		b, err = vfs.ReadFile(p.FS, name, 1<<20)
	}
	if errors.Is(err, fs.ErrPermission) && !p.followed() { // no copy was ever made
		return k, fmt.Errorf("%s: %w", name, errs.ErrNotFound)
	}
	if err != nil {
		return k, fmt.Errorf("reading %s: %w", name, err)
	}
	if st, err := p.FS.Stat(name); err == nil {
		if err := remote.CheckMode(name, st.Mode); err != nil {
			return k, fmt.Errorf("other users could sign a copy with the key of this machine: %w", err)
		}
	}
	if err := json.Unmarshal(b, &k); err != nil {
		// The error of package json could quote a key.
		return Keys{}, &errs.CorruptionError{Path: name, Offset: -1, Err: errors.New("the file does not contain the " +
			"keys of a copy")}
	}
	switch {
	case k.Format > keysFormat:
		return Keys{}, &errs.NewerError{Path: name, Format: uint64(k.Format), Reads: keysFormat}
	case k.Format < 1, len(k.Chain) != sealed.KeySize, len(k.Recipients) == 0,
		len(k.Seed) != ed25519.SeedSize && len(k.Seed) != 0:
		return Keys{}, &errs.CorruptionError{Path: name, Offset: -1, Err: errors.New("a key is missing or has the " +
			"wrong length")}
	}
	return k, nil
}

// movedKeys returns the path of the keys that are recorded for the folder from which the store was moved; "" if the
// store was not moved, or had no keys.
func (p *Places) movedKeys() string {
	if _, err := p.FS.Stat(p.path("place")); err == nil || !p.followed() {
		return "" // not moved, or never sent
	}
	here, err := p.inode()
	if err != nil {
		return ""
	}
	for pl, path := range p.otherPlaces() {
		if pl.Log == here && pl.Sealed {
			return strings.TrimSuffix(path, "place.json") + "keys.json"
		}
	}
	return ""
}

// SaveKeys records the keys of the copy.
func (p *Places) SaveKeys(k Keys) error {
	k.Format = keysFormat
	return p.write("keys", k)
}

// NewKeys returns the keys of a copy that is sealed for recipients.
func NewKeys(recipients []string, random io.Reader) (Keys, error) {
	k := Keys{Format: keysFormat, Recipients: recipients, Chain: make([]byte, sealed.KeySize)}
	if _, err := io.ReadFull(random, k.Chain); err != nil {
		return k, fmt.Errorf("reading random bytes: %w", err)
	}
	return k, k.Sign(random)
}

// Sign makes the key with which this machine signs, unless the machine has one.
func (k *Keys) Sign(random io.Reader) error {
	if len(k.Seed) == 0 {
		k.Seed = make([]byte, ed25519.SeedSize)
		if _, err := io.ReadFull(random, k.Seed); err != nil {
			return fmt.Errorf("reading random bytes: %w", err)
		}
	}
	if own := k.Signer(); !slices.Contains(k.Signers, own) {
		k.Signers = append(k.Signers, own)
	}
	return nil
}

// Signer returns the public key of this machine, or "" if the machine has no key.
func (k *Keys) Signer() string {
	if len(k.Seed) == 0 {
		return ""
	}
	return sealed.FormatKey(ed25519.NewKeyFromSeed(k.Seed).Public().(ed25519.PublicKey))
}

// Fingerprint returns a text that identifies the recipients, regardless of their order.
func (k *Keys) Fingerprint() string { return fingerprint(k.Recipients) }

func fingerprint(recipients []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(recipients)), "\n")))
	return hex.EncodeToString(sum[:16])
}

// RecipientsOf returns the text that identifies the recipients for whom an opened copy is sealed; "" if the copy is not
// sealed.
func RecipientsOf(r remote.Remote) string {
	s, ok := r.(*sealed.Remote)
	if !ok {
		return ""
	}
	return fingerprint(s.Recipients())
}

// Fingerprint returns the text that identifies the recipients of the copy; "" if the copy is not sealed.
func (p *Places) Fingerprint() (string, error) {
	k, err := p.Keys()
	if errors.Is(err, errs.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return k.Fingerprint(), nil
}

// Options returns the options with which the copy is opened. seal may be nil: then nothing can be added to the copy.
func (k *Keys) Options(seal sealed.Seal, random io.Reader) (o sealed.Options, err error) {
	o = sealed.Options{Chain: k.Chain, Recipients: k.Recipients, Seal: seal, Random: random}
	if len(k.Seed) > 0 {
		o.Sign = ed25519.NewKeyFromSeed(k.Seed)
	}
	for _, text := range k.Signers {
		key, err := sealed.ParseKey(text)
		if err != nil {
			return o, err
		}
		o.Signers = append(o.Signers, key)
	}
	return o, nil
}

// Opened returns a remote that reads and writes the copy of the store through r. If the copy is sealed, this is a
// sealed.Remote that uses r. If the copy is not sealed, or if r is a sealed.Remote already, it is r itself. unseal may
// be nil: then only the machine's own keys are available, and what was sent cannot be read.
func (p *Places) Opened(ctx context.Context, r remote.Remote, seal Sealer, unseal sealed.Unseal, random io.Reader) (
	remote.Remote, error) {
	if _, ok := r.(*sealed.Remote); ok {
		return r, nil
	}
	k, err := p.Keys()
	if errors.Is(err, errs.ErrNotFound) {
		if _, lerr := p.Load(ctx); errors.Is(lerr, errs.ErrCorrupt) {
			return nil, lerr // the copy is sealed, and its keys are missing
		}
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	var to sealed.Seal
	if seal != nil {
		if to, err = seal(k.Recipients); err != nil {
			return nil, err
		}
	}
	o, err := k.Options(to, random)
	if err != nil {
		return nil, err
	}
	o.Unseal = unseal
	return sealed.Open(ctx, r, o)
}
