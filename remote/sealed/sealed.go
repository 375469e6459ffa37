package sealed

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"sync"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
)

// Seal begins to encrypt data for the recipients of a copy. It returns a writer that encrypts what is written to it,
// and that writes the encrypted bytes to w.
type Seal = func(w io.Writer) (io.WriteCloser, error)

// Unseal decrypts size bytes of sealed, which Seal has encrypted. n is the number of decrypted bytes. If no identity
// can decrypt them, the error matches errs.ErrInvalid.
type Unseal = func(sealed io.ReaderAt, size int64) (plain io.ReaderAt, n int64, err error)

// Options are the keys of a Remote.
type Options struct {
	// Signers are the public keys of the machines whose signatures are accepted. The signature of any other machine is
	// refused with a *SignerError, which names its key.
	Signers []ed25519.PublicKey
	// Chain is the chain key. If Chain is nil and Unseal is set, Open reads the chain key from a snapshot. If both are
	// nil, the chain hashes of all marks stay masked.
	Chain []byte

	// Seal encrypts what is added, and Sign signs it. Without them nothing can be added.
	Seal Seal
	Sign ed25519.PrivateKey
	// Recipients are written into snapshots for those who open them.
	Recipients []string

	// Unseal decrypts what is read. If it is nil, Read verifies the encrypted bytes of a piece and returns them without
	// decrypting them, and the method Open returns an error that matches ErrUnable.
	Unseal Unseal

	Random io.Reader // default crypto/rand.Reader
}

// Remote is a sealed copy (encrypted and signed) that is stored in another Remote.
type Remote struct {
	inner remote.Remote
	o     Options
	chain *chain // nil if the chain key is not known

	mu       sync.Mutex
	geometry segment.Geometry // geometry of the store; zero until an entry was read or added
	last     *sealedPiece
	listed   map[uuid.UUID]remote.Snapshot // snapshots that Snapshots has returned, with masked marks
	hashes   map[[32]byte][][32]byte       // hashes of the blocks of snapshots, by their SHA-256
}

// sealedPiece is the piece that was sealed last. It is kept until the inner Remote has answered Append, because a
// repeated Append must send the same bytes.
type sealedPiece struct {
	piece remote.Piece // the piece that the place gets
	plain [32]byte     // SHA-256 of the plain bytes
}

// ErrUnable reports that a Remote lacks a key that the call needs. The error matches errs.ErrPermission.
var ErrUnable = fmt.Errorf("a required key is missing: %w", errs.ErrPermission)

// Open returns the sealed copy in a place. If Open must read the chain key from a snapshot and there is no snapshot,
// the error matches errs.ErrNotFound.
func Open(ctx context.Context, r remote.Remote, o Options) (*Remote, error) {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	s := &Remote{inner: r, o: o, hashes: map[[32]byte][][32]byte{}}
	key := o.Chain
	if key == nil && o.Unseal != nil {
		h, err := s.learn(ctx)
		if err != nil {
			return nil, err
		}
		key, s.o.Recipients = h.Chain, h.Recipients
	}
	if key == nil {
		return s, nil
	}
	if len(key) != KeySize {
		return nil, fmt.Errorf("%w: the chain key has %d bytes, not %d", errs.ErrInvalid, len(key), KeySize)
	}
	var err error
	s.chain, err = newChain([KeySize]byte(key), o.Random)
	return s, err
}

// learn returns the header of the newest snapshot that can be verified and decrypted. The header has the chain key. If
// the copy has no snapshot yet, the error matches errs.ErrNotFound.
func (r *Remote) learn(ctx context.Context) (h header, err error) {
	list, err := r.inner.Snapshots(ctx)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return h, err
	}
	if len(list) == 0 {
		head, herr := r.inner.Head(ctx)
		if err := errors.Join(err, herr); err != nil {
			return h, err
		}
		if head.Number > 0 && head.Format < remote.SealedFormat {
			return h, &PlainError{Place: r.inner.Place()}
		}
		return h, fmt.Errorf("%s: the copy has no snapshot yet: %w", r.inner.Place(), errs.ErrNotFound)
	}
	for i := len(list) - 1; i >= 0; i-- {
		var b *body
		if b, err = r.opened(ctx, &list[i]); err == nil {
			h = b.header
			return h, b.Close()
		}
		if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNotFound) {
			return h, err
		}
	}
	return h, err
}

// ChainKey returns the chain key, or nil if this Remote does not know the key.
func (r *Remote) ChainKey() []byte {
	if r.chain == nil {
		return nil
	}
	return bytes.Clone(r.chain.key[:])
}

// Recipients returns the recipients of the copy, as far as they are known.
func (r *Remote) Recipients() []string { return r.o.Recipients }

// Sealed returns true, which means that the sizes and hashes of snapshots are those of the encrypted bytes.
func (r *Remote) Sealed() bool { return true }

// ID returns the ID of the place; see remote.Remote.
func (r *Remote) ID() uuid.UUID { return r.inner.ID() }

// Place returns the address of the place, for messages.
func (r *Remote) Place() string { return r.inner.Place() }

// Close closes the inner Remote, in which the copy is stored.
func (r *Remote) Close() error { return r.inner.Close() }

// position converts p, a position of the inner Remote: it unmasks the mark, and sets the format of plain entries. If
// the entry is not sealed, position returns an error.
func (r *Remote) position(p remote.Position) (remote.Position, error) {
	if p.Number == 0 {
		return p, nil
	}
	if err := r.sealedFormat(p.Format); err != nil {
		return p, err
	}
	p.At, p.Format = r.chain.unmask(p.At), remote.Format
	return p, nil
}

// remember keeps the geometry of the store for later calls.
func (r *Remote) remember(geo segment.Geometry) {
	r.mu.Lock()
	r.geometry = geo
	r.mu.Unlock()
}

// moved unmasks the position in a *remote.MovedError; it returns any other error unchanged.
func (r *Remote) moved(err error) error {
	moved := (*remote.MovedError)(nil)
	if !errors.As(err, &moved) {
		return err
	}
	head, perr := r.position(moved.Head)
	if perr != nil {
		return perr
	}
	return &remote.MovedError{Place: moved.Place, Head: head}
}

// Head returns the newest entry; see remote.Remote. If the entry is not sealed, Head returns an error.
func (r *Remote) Head(ctx context.Context) (remote.Position, error) {
	p, err := r.inner.Head(ctx)
	if err != nil {
		p.At = r.chain.unmask(p.At)
		return p, err
	}
	if p.Number > 0 {
		r.remember(p.Geometry)
	}
	return r.position(p)
}

// sealing returns an error that matches ErrUnable if the Remote lacks a key that is needed to add entries.
func (r *Remote) sealing() error {
	if r.o.Seal == nil || r.o.Sign == nil || r.chain == nil {
		return fmt.Errorf("adding to the copy at %s: %w", r.inner.Place(), ErrUnable)
	}
	return nil
}

// format returns the format number of the sealed form of an entry or snapshot; plain is the format number of its plain
// form.
func format(plain uint32) (uint32, error) {
	if plain != remote.Format {
		return 0, fmt.Errorf("%w: a piece or snapshot of format %d cannot be sealed", errs.ErrInvalid, plain)
	}
	return remote.SealedFormat, nil
}

// Begin begins an epoch; see remote.Remote. It masks the mark at which the epoch begins.
func (r *Remote) Begin(ctx context.Context, a *remote.Anchor) (epoch uint64, err error) {
	if err := r.sealing(); err != nil {
		return 0, err
	}
	b := *a
	if b.Format, err = format(a.Format); err != nil {
		return 0, err
	}
	b.At = r.chain.mask(a.At)
	epoch, err = r.inner.Begin(ctx, &b)
	if err == nil {
		r.remember(a.Geometry)
	}
	return epoch, r.moved(err)
}

// Append encrypts and signs a piece, and appends it to the inner Remote; see remote.Remote.
func (r *Remote) Append(ctx context.Context, p *remote.Piece) error {
	if err := r.sealing(); err != nil {
		return err
	}
	if err := p.Valid(); err != nil {
		return err
	}
	s, err := r.seal(ctx, p)
	if err != nil {
		return err
	}
	err = r.inner.Append(ctx, s)
	if err == nil || errors.Is(err, remote.ErrMoved) {
		r.mu.Lock()
		r.last = nil
		r.mu.Unlock()
	}
	return r.moved(err)
}

// seal returns the sealed form of a piece. For the piece that was sealed last it returns the same bytes again.
func (r *Remote) seal(ctx context.Context, p *remote.Piece) (*remote.Piece, error) {
	plain := sha256.Sum256(p.Bytes)
	r.mu.Lock()
	last, geo := r.last, r.geometry
	r.mu.Unlock()
	out := *p
	out.From, out.To = r.chain.mask(p.From), r.chain.mask(p.To)
	var err error
	if out.Format, err = format(p.Format); err != nil {
		return nil, err
	}
	if last != nil && last.plain == plain && last.piece.Epoch == p.Epoch && last.piece.From == out.From &&
		last.piece.To == out.To {
		return &last.piece, nil
	}
	if !geo.Valid() { // this Remote has not read or added an entry yet
		head, err := r.Head(ctx)
		if err != nil {
			return nil, err
		}
		if head.Number == 0 {
			return nil, &remote.MovedError{Place: r.inner.Place(), Head: head}
		}
		geo = head.Geometry
	}
	e, err := newEncryption(r.o.Seal)
	if err == nil {
		_, err = e.w.Write(p.Bytes)
	}
	if err == nil {
		err = e.w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("sealing a piece: %w", err)
	}
	st := stated(&out, geo)
	out.Bytes = e.statement(&st, r)
	if len(out.Bytes) > segment.MaxSize {
		return nil, fmt.Errorf("%w: a piece of %d bytes is too large to be sealed", errs.ErrLimit, len(p.Bytes))
	}
	last = &sealedPiece{piece: out, plain: plain}
	r.mu.Lock()
	r.last = last
	r.mu.Unlock()
	return &last.piece, nil
}

// encryption collects the encrypted bytes of a piece.
type encryption struct {
	w      io.WriteCloser // encrypts what is written to it
	out    bytes.Buffer   // encrypted bytes that were not fetched yet
	length uint64         // number of all encrypted bytes
	sum    hash.Hash      // SHA-256 of all encrypted bytes
}

func newEncryption(seal Seal) (*encryption, error) {
	e := &encryption{sum: sha256.New()}
	var err error
	e.w, err = seal(encrypted{e})
	return e, err
}

// encrypted is the writer that adds encrypted bytes to e, and updates their number and their SHA-256 there.
type encrypted struct{ e *encryption }

func (c encrypted) Write(b []byte) (int, error) {
	c.e.length += uint64(len(b))
	_, _ = c.e.sum.Write(b)
	return c.e.out.Write(b)
}

// statement completes the statement s and signs it. It returns the encrypted bytes that were not fetched yet, with the
// signed statement at their end.
func (e *encryption) statement(s *statement, r *Remote) []byte {
	s.length, s.sha256, s.key = e.length, [32]byte(e.sum.Sum(nil)), r.chain.commitment()
	return s.append(e.out.Bytes(), r.o.Sign)
}

// Read returns the pieces of an epoch. Reading ends with an error at a piece that no known machine has signed.
func (r *Remote) Read(ctx context.Context, epoch uint64, from segment.LSN) iter.Seq2[remote.Piece, error] {
	return func(yield func(remote.Piece, error) bool) {
		var geo segment.Geometry
		list, err := r.inner.Epochs(ctx)
		for _, e := range list {
			if e.Number == epoch {
				geo = e.Geometry
			}
		}
		if err != nil && (!geo.Valid() || !errors.Is(err, errs.ErrCorrupt)) {
			yield(remote.Piece{}, err)
			return
		}
		for p, err := range r.inner.Read(ctx, epoch, from) {
			if err == nil {
				p, err = r.unsealed(p, geo)
			}
			if !yield(p, err) || err != nil && !errors.Is(err, errs.ErrCorrupt) {
				return
			}
		}
	}
}

// unsealed verifies the signature of a piece, and returns the piece with unmasked marks and decrypted bytes. If
// Options.Unseal is nil, the bytes stay encrypted.
func (r *Remote) unsealed(p remote.Piece, geo segment.Geometry) (remote.Piece, error) {
	if err := r.sealedFormat(p.Format); err != nil {
		return remote.Piece{}, err
	}
	damaged := func(err error) error {
		if errors.Is(err, ErrForged) {
			return err
		}
		return &errs.CorruptionError{Path: fmt.Sprintf("%s piece from %d to %d", r.inner.Place(), p.From.LSN, p.To.LSN),
			Offset: -1, Err: err}
	}
	n := len(p.Bytes) - statementSize
	if n < 0 {
		return remote.Piece{}, damaged(errNoStatement)
	}
	s, err := r.trusted(p.Bytes[n:], stated(&p, geo))
	if err != nil {
		return remote.Piece{}, damaged(err)
	}
	if s.length != uint64(n) || s.sha256 != sha256.Sum256(p.Bytes[:n]) {
		return remote.Piece{}, damaged(errBytes)
	}
	p.From, p.To, p.Format = r.chain.unmask(p.From), r.chain.unmask(p.To), remote.Format
	if r.o.Unseal == nil {
		p.Bytes = p.Bytes[:n]
		return p, nil
	}
	plain, size, err := r.o.Unseal(bytes.NewReader(p.Bytes[:n]), int64(n))
	if err != nil {
		return remote.Piece{}, err
	}
	if size < 0 || size > int64(n) {
		return remote.Piece{}, damaged(fmt.Errorf("%d encrypted bytes cannot contain %d plain bytes", n, size))
	}
	p.Bytes = make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(plain, 0, size), p.Bytes); err != nil {
		return remote.Piece{}, damaged(err)
	}
	return p, nil
}

// sealedFormat returns an error if the format is not that of sealed bytes.
func (r *Remote) sealedFormat(f uint32) error {
	switch {
	case f < remote.SealedFormat:
		return &PlainError{Place: r.inner.Place()}
	case f > remote.SealedFormat:
		return &errs.NewerError{Path: r.inner.Place(), Format: uint64(f), Reads: remote.SealedFormat}
	}
	return nil
}

// Epochs returns the epochs of which entries are kept.
func (r *Remote) Epochs(ctx context.Context) ([]remote.Epoch, error) {
	list, err := r.inner.Epochs(ctx)
	for i := range list {
		list[i].From, list[i].To = r.chain.unmask(list[i].From), r.chain.unmask(list[i].To)
	}
	return list, err
}

// Wait blocks until there is an entry whose number is greater than beyond.
func (r *Remote) Wait(ctx context.Context, beyond uint64) error { return r.inner.Wait(ctx, beyond) }

// Drop removes a snapshot; see remote.Remote.
func (r *Remote) Drop(ctx context.Context, id uuid.UUID) error { return r.inner.Drop(ctx, id) }

// Prune removes the oldest entries; see remote.Remote.
func (r *Remote) Prune(ctx context.Context, epoch uint64, pos segment.LSN) (int, error) {
	return r.inner.Prune(ctx, epoch, pos)
}

// Register records a machine; see remote.Remote. The name of the machine is stored in encrypted form.
func (r *Remote) Register(ctx context.Context, m remote.Machine) (err error) {
	if err := r.sealing(); err != nil {
		return err
	}
	if m.Name, err = r.chain.hide(m.Name); err != nil {
		return err
	}
	return r.inner.Register(ctx, m)
}

// Machines returns the recorded machines. A name that cannot be decrypted is empty.
func (r *Remote) Machines(ctx context.Context) ([]remote.Machine, error) {
	list, err := r.inner.Machines(ctx)
	for i := range list {
		name := ""
		if r.chain != nil {
			if shown, err := r.chain.show(list[i].Name); err == nil {
				name = shown
			}
		}
		list[i].Name = name
	}
	return list, err
}

// header is the data that a sealed snapshot has before its body.
type header struct {
	Chain      []byte   `json:"chain"`
	Recipients []string `json:"recipients"`
}

const (
	headerMagic = "varvekey"
	headerStart = 12
	headerMost  = 64 << 10
)

func (h *header) encode() ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(text) > headerMost {
		return nil, fmt.Errorf("%w: the public keys of all recipients have more than %d bytes", errs.ErrLimit,
			headerMost)
	}
	b := binary.LittleEndian.AppendUint32([]byte(headerMagic), uint32(len(text)))
	return append(b, text...), nil
}

// decodeHeader reads the header of a snapshot, and returns its size.
func decodeHeader(r io.ReaderAt) (h header, size int64, err error) {
	start := make([]byte, headerStart)
	if n, err := r.ReadAt(start, 0); n < len(start) {
		return h, 0, err
	}
	n := binary.LittleEndian.Uint32(start[8:])
	if string(start[:8]) != headerMagic || n > headerMost {
		return h, 0, errors.New("the snapshot does not begin with its keys")
	}
	text := make([]byte, n)
	if m, err := r.ReadAt(text, headerStart); m < len(text) {
		return h, 0, err
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, 0, err
	}
	if len(h.Chain) != KeySize {
		return h, 0, errors.New("the snapshot has no chain key")
	}
	return h, headerStart + int64(n), nil
}
