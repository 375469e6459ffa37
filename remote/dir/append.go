package dir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
)

const pollEvery = time.Second

// Append appends a piece; see remote.Remote. ctx can cancel Append only until the piece is in its temporary file.
func (r *Remote) Append(ctx context.Context, p *remote.Piece) error {
	if err := p.Valid(); err != nil {
		return err
	}
	h, err := r.head(ctx)
	if err != nil {
		return err
	}
	at := h.position
	if at.Number > 0 && at.Epoch == p.Epoch && at.At == p.To {
		return nil // added before
	}
	if at.Number == 0 || at.Epoch != p.Epoch || at.At != p.From {
		return &remote.MovedError{Place: r.Place(), Head: at}
	}
	next := head{kind: kindPiece, position: at, from: p.From, previous: h.sum}
	n := &next.position
	n.At, n.Machine, n.Request, n.Format, n.Time = p.To, p.Machine, p.Request, p.Format, p.Time
	return r.follow(ctx, &next, p.Bytes)
}

// Begin begins an epoch; see remote.Remote. If the newest entry is damaged, Begin can also begin an epoch after it,
// provided that an entry before it can be read.
func (r *Remote) Begin(ctx context.Context, a *remote.Anchor) (epoch uint64, err error) {
	if err := a.Valid(); err != nil {
		return 0, err
	}
	h, err := r.head(ctx)
	at := h.position
	if damage := err; errors.Is(err, errs.ErrCorrupt) && at.Number > 0 {
		if h, err = r.before(ctx, at.Number); err == nil {
			err = r.settle(at.Number)
		}
		if err == nil && h.position.Number == 0 {
			return 0, damage // nothing shows whose copy it is
		}
		at.Epoch, at.Geometry = h.position.Epoch+1, h.position.Geometry // the damaged entry may have begun an epoch
		h.sum = [32]byte{}
	}
	if err != nil {
		return 0, err
	}
	store := uuid.UUID(at.Geometry.UUID)
	switch {
	case store != uuid.Nil && store != a.Geometry.UUID:
		return 0, &remote.OtherStoreError{Place: r.Place(), Has: store, Want: a.Geometry.UUID}
	case at.Number > 0 && at.Request == a.Request && at.At == a.At && at.Log == a.Log && h.kind == kindAnchor:
		return at.Epoch, nil // begun before
	case at.Number != a.Follows:
		return 0, &remote.MovedError{Place: r.Place(), Head: at}
	}
	next := head{kind: kindAnchor, from: a.At, previous: h.sum, position: remote.Position{
		Number: at.Number, Geometry: a.Geometry, Log: a.Log, Epoch: at.Epoch + 1, At: a.At,
		Machine: a.Machine, Request: a.Request, Format: a.Format, Time: a.Time}}
	return at.Epoch + 1, r.follow(ctx, &next, nil)
}

// before returns the head of the newest readable entry before a damaged entry, whose number is given. It returns the
// zero head if no earlier entry can be read.
func (r *Remote) before(ctx context.Context, number uint64) (h head, err error) {
	floor, err := r.floor()
	if err != nil {
		return h, err
	}
	for number--; number >= floor && ctx.Err() == nil; number-- {
		if h, _, err = r.readHead(number, false); !errors.Is(err, errs.ErrCorrupt) {
			return h, err
		}
	}
	return head{}, ctx.Err()
}

// follow adds an entry with the head next and the bytes data after the newest entry. The caller sets the number in
// next to that of the newest entry; follow increases the number by one. All entries that were durable before the call
// stay durable.
func (r *Remote) follow(ctx context.Context, next *head, data []byte) error {
	n := &next.position
	if n.Number++; n.Number > maxNumber {
		return fmt.Errorf("%w: the number of the next entry of %s, %d, is above the limit of %d", errs.ErrLimit,
			r.dir, n.Number, maxNumber)
	}
	next.length, next.sha = uint64(len(data)), sha256.Sum256(data)
	folder := r.path("log", folderOf(n.Number))
	if err := r.o.FS.Mkdir(folder, r.o.FolderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return vfs.Failed("creating", folder, err)
	}
	begin := next.encode(r.id)
	err := r.addBy(ctx, func(f io.WriterAt) error {
		if _, err := f.WriteAt(begin, 0); err != nil {
			return err
		}
		return inParts(f, data, entryHead)
	}, r.entry(n.Number))
	if errors.Is(err, fs.ErrExist) {
		return r.beaten(ctx, next)
	}
	if err != nil {
		return err
	}
	if err := r.settle(n.Number); err != nil {
		return err
	}
	return r.checkFloor(ctx, next)
}

// checkFloor returns nil if the entry that was just added is not below the floor, the number of the oldest entry that
// is kept. An entry below the floor was added too late: other writers had added an entry with this number and higher
// ones before, and had pruned them. In that case checkFloor removes the file of the late entry and returns a
// *remote.MovedError.
func (r *Remote) checkFloor(ctx context.Context, next *head) error {
	floor, err := r.floor()
	if err != nil {
		return err
	}
	if n := next.position.Number; n < floor {
		_ = r.o.FS.Remove(r.entry(n)) // below the floor it has no effect
		h, err := r.head(ctx)
		if err != nil {
			return err
		}
		return &remote.MovedError{Place: r.Place(), Head: h.position}
	}
	r.mu.Lock()
	r.newest = max(r.newest, next.position.Number)
	r.mu.Unlock()
	return nil
}

// beaten handles the case that an entry with the number of next exists already. If this writer added that entry in an
// earlier attempt whose answer was lost, beaten makes the entry durable and returns the result of checkFloor. If
// another writer added it, beaten returns a *remote.MovedError.
func (r *Remote) beaten(ctx context.Context, next *head) error {
	there, _, err := r.readHead(next.position.Number, false)
	if err == nil && there.sum == next.sum {
		if err := r.settle(next.position.Number); err != nil {
			return err
		}
		return r.checkFloor(ctx, next)
	}
	h, err := r.head(ctx)
	if err != nil {
		return err
	}
	return &remote.MovedError{Place: r.Place(), Head: h.position}
}

// inParts writes data to f at offset off, in parts of at most 1 MiB, so that a file of vfs.Streamed can sync between
// two parts.
func inParts(f io.WriterAt, data []byte, off int64) error {
	for len(data) > 0 {
		n, err := f.WriteAt(data[:min(len(data), 1<<20)], off)
		if err != nil {
			return err
		}
		data, off = data[n:], off+int64(n)
	}
	return nil
}
