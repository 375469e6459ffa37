package varve

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/offsite"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/sealed"
)

var (
	// ErrSealed reports that a copy is sealed, and no key was given that opens it.
	ErrSealed = remote.ErrSealed
	// ErrForged reports that a copy is not proven to be the requested one: it was signed by an unknown machine, is not
	// sealed, or ends before a position that it is known to have reached.
	ErrForged = sealed.ErrForged
)

// SignerError reports that a part of a copy is signed by a machine whose key was not named.
type SignerError = sealed.SignerError

// CopyKeys are the public keys of a sealed copy.
type CopyKeys struct {
	Recipients []string // who can read the copy
	// Pending reports that nothing was sent to the recipients yet, because they were changed: until the process that
	// sends begins an epoch for them, the copy is for those before.
	Pending bool
	Signer  string // public part of the key with which this machine signs; "": a clone that has not taken the copy
}

// Keys returns the public keys of the store's copy. The error matches ErrNotFound if the copy is not sealed.
func (rc Offsite) Keys() (CopyKeys, error) {
	p := rc.st.inner.Places()
	k, err := p.Keys()
	if err != nil {
		return CopyKeys{}, err
	}
	keys := CopyKeys{Recipients: k.Recipients, Signer: k.Signer()}
	if b, err := p.Keeper().Load(context.Background()); err == nil { // a clone sends nothing, and has no binding
		keys.Pending = b.Recipients != k.Fingerprint()
	}
	return keys, nil
}

// AddSealed is like Add, for a sealed copy, which only the recipients can decrypt. recipients are public keys in the
// form that Options.SealRemote accepts. AddSealed returns the public part of the key with which this machine signs the
// copy. A user who restores the copy must know this public key from another source than the copy. If the store already
// sends a sealed copy to url, AddSealed changes the recipients: it begins a new epoch with a snapshot for the new
// recipients. The previous recipients can still read what was sent before.
func (rc Offsite) AddSealed(ctx context.Context, r remote.Remote, url string, recipients []string) (signer string,
	err error) {
	seal := rc.st.inner.Sealer()
	if seal == nil {
		return "", fmt.Errorf("%w: this program cannot encrypt → set Options.SealRemote", errs.ErrInvalid)
	}
	if _, err := seal(recipients); err != nil {
		return "", err
	}
	p, e := rc.st.inner.Places(), rc.st.inner.Engine.Env()
	now, err := p.Load(ctx)
	if err == nil && now.URL == url && now.Sends() {
		return rc.reseal(ctx, r, recipients)
	}
	if err == nil { // refused by Add
		return "", rc.Add(ctx, r, url)
	}
	if !errors.Is(err, errs.ErrNotFound) && !errors.Is(err, errs.ErrInvalid) {
		return "", err
	}
	k, err := offsite.NewKeys(recipients, e.Rand())
	if err != nil {
		return "", err
	}
	if err := rc.add(ctx, r, url, &k); err != nil {
		if _, lerr := p.Load(ctx); errors.Is(lerr, errs.ErrNotFound) {
			err = errors.Join(err, p.Remove())
		}
		return "", err
	}
	return k.Signer(), nil
}

// reseal changes the recipients of the remote copy; see AddSealed.
func (rc Offsite) reseal(ctx context.Context, r remote.Remote, recipients []string) (signer string, err error) {
	p, e := rc.st.inner.Places(), rc.st.inner.Engine.Env()
	k, err := p.Keys()
	if errors.Is(err, errs.ErrNotFound) {
		return "", fmt.Errorf("%w: the copy at %s is not sealed (encrypted), and everything sent so far would stay "+
			"readable → run memctl remote remove, then memctl remote add with an empty place", errs.ErrInvalid,
			r.Place())
	}
	if err != nil {
		return "", err
	}
	before := k.Fingerprint()
	k.Recipients = slices.Clone(recipients)
	if k.Fingerprint() != before {
		if err := p.SaveKeys(k); err != nil {
			return "", err
		}
		now, err := p.Load(ctx)
		if err != nil {
			return "", err
		}
		now.Added = e.Clock().UTC() // the process that sends begins again when the place changes
		if err := p.Save(now); err != nil {
			return "", err
		}
	}
	if err := rc.Send(ctx, r); err != nil && !errors.Is(err, errs.ErrLocked) { // then the other process sends
		return "", err
	}
	return k.Signer(), nil
}

// Open returns the store's remote copy at r. If the copy is sealed, Open uses the keys of this machine, which can
// verify the copy's signatures but cannot decrypt its contents. unseal decrypts the contents; if unseal is nil, the
// contents cannot be read.
func (rc Offsite) Open(ctx context.Context, r remote.Remote, unseal Unseal) (remote.Remote, error) {
	return rc.st.inner.OpenCopy(ctx, r, unseal)
}

// signing returns the store's remote copy at r, ready for sending. If the copy is sealed, signing makes sure that this
// machine has a key to sign with.
func (rc Offsite) signing(ctx context.Context, r remote.Remote) (remote.Remote, error) {
	p, e := rc.st.inner.Places(), rc.st.inner.Engine.Env()
	k, err := p.Keys()
	if err == nil {
		if err = k.Sign(e.Rand()); err == nil {
			err = p.SaveKeys(k) // for this folder, if the store was moved
		}
	}
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return nil, err
	}
	return rc.st.inner.OpenCopy(ctx, r, nil)
}

// opened returns the remote copy to be cloned. If the options have keys of a sealed copy, the result verifies and
// decrypts the copy, and opened also returns its keys; otherwise the keys are nil.
func (o *CloneOptions) opened(ctx context.Context, r remote.Remote) (remote.Remote, *offsite.Keys, error) {
	var keys *offsite.Keys
	if o.Unseal != nil || len(o.Signers) > 0 {
		if o.Unseal == nil {
			return nil, nil, fmt.Errorf("%w: the public keys of signing machines are given (Signers), but no "+
				"identity that decrypts the copy (Unseal)", errs.ErrInvalid)
		}
		so := sealed.Options{Unseal: o.Unseal}
		for _, text := range o.Signers {
			key, err := sealed.ParseKey(text)
			if err != nil {
				return nil, nil, err
			}
			so.Signers = append(so.Signers, ed25519.PublicKey(key))
		}
		s, err := sealed.Open(ctx, r, so)
		if err != nil {
			return nil, nil, err
		}
		keys = &offsite.Keys{Chain: s.ChainKey(), Recipients: s.Recipients(), Signers: o.Signers}
		r = s
	}
	if o.Known == "" {
		return r, keys, nil
	}
	known, err := sealed.ParseKnown(o.Known)
	if err != nil {
		return nil, nil, err
	}
	head, err := r.Head(ctx)
	if err == nil {
		err = known.Check(r.Place(), &head)
	}
	return r, keys, err
}

// proven returns a *sealed.OlderError if the signed pieces and snapshots that were read for a clone end before the
// position CloneOptions.Known. The position that the remote itself reports as the end of the copy proves nothing,
// because it is not signed.
func (o *CloneOptions) proven(ctx context.Context, r remote.Remote, m *offsite.Moment) error {
	if o.Known == "" {
		return nil
	}
	known, err := sealed.ParseKnown(o.Known)
	if err != nil {
		return err
	}
	if !o.At.IsZero() && m.Epoch < known.Epoch { // a later epoch was begun since
		return offsite.Proven(ctx, r, known)
	}
	return known.Check(r.Place(), &remote.Position{Epoch: m.Epoch, At: m.Read})
}
