package sealed

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
)

// Save encrypts and signs a snapshot, and stores it in the inner Remote; see remote.Remote.
func (r *Remote) Save(ctx context.Context, s *remote.Snapshot, plain io.Reader) error {
	if err := r.sealing(); err != nil {
		return err
	}
	h := header{Chain: r.chain.key[:], Recipients: r.o.Recipients}
	begin, err := h.encode()
	if err != nil {
		return err
	}
	e, err := newEncryption(r.o.Seal)
	if err == nil {
		_, err = e.w.Write(begin)
	}
	if err != nil {
		return fmt.Errorf("sealing a snapshot: %w", err)
	}
	out := *s
	if out.Format, err = format(s.Format); err != nil {
		return err
	}
	out.Begin, out.End = r.chain.mask(s.Begin), r.chain.mask(s.End)
	if err := r.inner.Save(ctx, &out, &sealing{r: r, e: e, plain: plain, snapshot: s, out: &out}); err != nil {
		return err
	}
	s.Size, s.SHA256 = out.Size, out.SHA256
	return nil
}

// sealing is a reader that returns the sealed form of a snapshot's body, and encrypts it while it is read.
type sealing struct {
	r        *Remote
	e        *encryption
	plain    io.Reader
	snapshot *remote.Snapshot // as the caller has it; End and Time are known when plain ends
	out      *remote.Snapshot // as the place gets it
	at       int              // number of bytes of e.out that were read
	ended    bool
	err      error
	chunk    [64 << 10]byte
}

// Read reads the next bytes of the sealed form.
func (s *sealing) Read(b []byte) (int, error) {
	for s.err == nil && !s.ended && s.at == s.e.out.Len() {
		s.e.out.Reset()
		s.at = 0
		s.err = s.fill()
	}
	if s.err != nil {
		return 0, s.err
	}
	n := copy(b, s.e.out.Bytes()[s.at:])
	s.at += n
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// fill encrypts the next bytes of the snapshot. After the last ones it appends the signed statement.
func (s *sealing) fill() error {
	n, end, err := remote.Fill(s.plain, s.chunk[:])
	if err != nil {
		return err
	}
	if _, err := s.e.w.Write(s.chunk[:n]); err != nil {
		return fmt.Errorf("sealing a snapshot: %w", err)
	}
	if !end {
		return nil
	}
	if err := s.e.w.Close(); err != nil {
		return fmt.Errorf("sealing a snapshot: %w", err)
	}
	s.ended = true
	s.out.End, s.out.Time = s.r.chain.mask(s.snapshot.End), s.snapshot.Time
	st := statedOf(s.out)
	tail := s.e.statement(&st, s.r)
	s.e.out.Reset()
	_, err = s.e.out.Write(tail)
	return err
}

// Snapshots returns the complete snapshots. If one of them is not sealed, Snapshots returns the others together with a
// *errs.CorruptionError. It does not verify the descriptions of the snapshots; they are verified when the snapshots are
// opened.
func (r *Remote) Snapshots(ctx context.Context) (list []remote.Snapshot, err error) {
	all, err := r.inner.Snapshots(ctx)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return nil, err
	}
	listed := map[uuid.UUID]remote.Snapshot{}
	for _, s := range all {
		if ferr := r.sealedFormat(s.Format); ferr != nil {
			if errors.Is(ferr, ErrForged) {
				ferr = r.damaged(s.ID, ferr)
			}
			err = errors.Join(err, ferr)
			continue
		}
		listed[s.ID] = s
		s.Begin, s.End, s.Format = r.chain.unmask(s.Begin), r.chain.unmask(s.End), remote.Format
		list = append(list, s)
	}
	r.mu.Lock()
	r.listed = listed
	r.mu.Unlock()
	return list, err
}

func (r *Remote) damaged(id uuid.UUID, err error) error {
	return &errs.CorruptionError{Path: fmt.Sprintf("%s snapshot %s", r.inner.Place(), id), Offset: -1, Err: err}
}

// Open verifies the signature of a snapshot, and returns its plain bytes. It reads and verifies all encrypted bytes
// before it returns, unless an earlier call has done so; each block is verified once more when it is read.
func (r *Remote) Open(ctx context.Context, id uuid.UUID) (remote.Body, error) {
	if r.o.Unseal == nil {
		return nil, fmt.Errorf("opening a snapshot of %s: %w -> --identity FILE", r.inner.Place(), ErrUnable)
	}
	s, err := r.find(ctx, id)
	if err != nil {
		return nil, err
	}
	b, err := r.opened(ctx, s)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// find returns the description of a snapshot as the inner Remote has it, with masked marks. If Snapshots has listed the
// snapshot, find returns the description from that time, because the caller has chosen the snapshot by that
// description.
func (r *Remote) find(ctx context.Context, id uuid.UUID) (*remote.Snapshot, error) {
	r.mu.Lock()
	s, ok := r.listed[id]
	r.mu.Unlock()
	if ok {
		return &s, nil
	}
	list, err := r.inner.Snapshots(ctx)
	for i := range list {
		if list[i].ID == id {
			return &list[i], nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%s: snapshot %s: %w", r.inner.Place(), id, errs.ErrNotFound)
	}
	return nil, err
}

// body has the plain bytes of a snapshot.
type body struct {
	*io.SectionReader
	header header
	inner  remote.Body
}

// Close releases the snapshot's bytes in the inner Remote. The snapshot cannot be read after Close.
func (b *body) Close() error { return b.inner.Close() }

// opened verifies and decrypts a snapshot. s is its description as the place has it.
func (r *Remote) opened(ctx context.Context, s *remote.Snapshot) (*body, error) {
	in, err := r.verified(ctx, s)
	if err != nil {
		return nil, err
	}
	plain, size, err := r.o.Unseal(in, in.size)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	h, start, err := decodeHeader(plain)
	if err == nil && (size < start || size > in.size) {
		err = fmt.Errorf("%d encrypted bytes cannot contain %d plain bytes", in.size, size)
	}
	if c := r.chain; err == nil && c != nil && c.key != [KeySize]byte(h.Chain) {
		err = errors.New("the snapshot has another chain key than the copy")
	}
	if err != nil {
		return nil, errors.Join(r.damaged(s.ID, err), in.Close())
	}
	return &body{SectionReader: io.NewSectionReader(plain, start, size-start), header: h, inner: in}, nil
}

// verified opens the encrypted bytes of a snapshot, and verifies that a known machine has signed them. s is the
// description of the snapshot as the place has it.
func (r *Remote) verified(ctx context.Context, s *remote.Snapshot) (*pinned, error) {
	if err := r.sealedFormat(s.Format); err != nil {
		return nil, err
	}
	in, err := r.inner.Open(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	p, err := r.signed(ctx, s, in)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return p, nil
}

// signed verifies that a known machine has signed body, the sealed bytes of the snapshot s, and pins the bytes
// that were signed.
func (r *Remote) signed(ctx context.Context, s *remote.Snapshot, body remote.Body) (*pinned, error) {
	n := body.Size() - statementSize
	if n < 0 {
		return nil, r.damaged(s.ID, errNoStatement)
	}
	end := make([]byte, statementSize)
	if m, err := body.ReadAt(end, n); m < len(end) {
		return nil, err
	}
	st, err := r.trusted(end, statedOf(s))
	if errors.Is(err, ErrForged) {
		return nil, err
	}
	if err != nil {
		return nil, r.damaged(s.ID, err)
	}
	p := &pinned{Body: body, size: n}
	if st.length != uint64(n) {
		return nil, r.damaged(s.ID, errBytes)
	}
	r.mu.Lock()
	p.hashes = r.hashes[st.sha256]
	r.mu.Unlock()
	if p.hashes != nil { // the blocks are compared when they are read
		return p, nil
	}
	sum, err := p.pin(ctx)
	if err != nil {
		return nil, err
	}
	if st.sha256 != sum {
		return nil, r.damaged(s.ID, errBytes)
	}
	r.mu.Lock()
	r.hashes[sum] = p.hashes
	r.mu.Unlock()
	return p, nil
}

// pinnedBlock is the size in bytes of the blocks of which pinned records a hash each.
const pinnedBlock = 64 << 10

// pinned has the encrypted bytes of a snapshot whose signature was verified. To decrypt the bytes, they are read from
// the place a second time, and the place could return other bytes then. So ReadAt compares each block with the hash
// that pin has recorded.
type pinned struct {
	remote.Body
	size   int64      // number of encrypted bytes
	hashes [][32]byte // SHA-256 of each block
}

// pin reads all encrypted bytes, and records the hash of each block of pinnedBlock bytes. It returns the SHA-256 of
// all bytes.
func (p *pinned) pin(ctx context.Context) (sum [32]byte, err error) {
	all, block := sha256.New(), make([]byte, pinnedBlock)
	r := vfs.Until(ctx, io.NewSectionReader(p.Body, 0, p.size))
	for {
		n, err := io.ReadFull(r, block)
		if n > 0 {
			_, _ = all.Write(block[:n])
			p.hashes = append(p.hashes, sha256.Sum256(block[:n]))
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return [32]byte(all.Sum(nil)), nil
		}
		if err != nil {
			return sum, err
		}
	}
}

// ReadAt reads encrypted bytes, and verifies them. If the place returns other bytes than when the snapshot was
// verified, the error is a *errs.CorruptionError.
func (p *pinned) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("%w: the offset %d is negative", errs.ErrInvalid, off)
	}
	block := make([]byte, pinnedBlock)
	for n < len(b) {
		at := off + int64(n)
		if at >= p.size {
			return n, io.EOF
		}
		i := at / pinnedBlock
		begin := i * pinnedBlock
		data := block[:min(pinnedBlock, p.size-begin)]
		if m, err := p.Body.ReadAt(data, begin); m < len(data) {
			return n, err
		}
		if sha256.Sum256(data) != p.hashes[i] {
			return n, &errs.CorruptionError{Path: "the sealed snapshot", Offset: begin, Err: errBytes}
		}
		n += copy(b[n:], data[at-begin:])
	}
	return n, nil
}

// VerifyPiece verifies the frames of a piece that Read has returned. Without Options.Unseal it verifies nothing: Read
// has verified the signature, and the frames are encrypted.
func (r *Remote) VerifyPiece(p *remote.Piece, geo segment.Geometry) error {
	if r.o.Unseal == nil {
		return nil
	}
	return p.Check(geo)
}

// VerifySnapshot verifies the signature and the bytes of a snapshot. With Options.Unseal it also decrypts all of them.
func (r *Remote) VerifySnapshot(ctx context.Context, id uuid.UUID) error {
	s, err := r.find(ctx, id)
	if err != nil {
		return err
	}
	if r.o.Unseal == nil {
		in, err := r.verified(ctx, s)
		if err != nil {
			return err
		}
		return in.Close()
	}
	b, err := r.opened(ctx, s)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, vfs.Until(ctx, b.SectionReader))
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		err = r.damaged(id, err)
	}
	return errors.Join(err, b.Close())
}
