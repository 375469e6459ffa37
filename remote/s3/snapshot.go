package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/minio/minio-go/v7"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

const (
	snapshotFolder = "snapshots/"
	metaSuffix     = ".meta"
	partSize       = 16 << 20 // bytes of an object that has a part of a snapshot; the last part may have fewer
	readAhead      = 1 << 20  // bytes that are read from a snapshot at least
)

// description is the content of the object <id>.meta, which describes a snapshot.
type description struct {
	Remote  uuid.UUID `json:"remote"`
	ID      uuid.UUID `json:"id"`
	Store   uuid.UUID `json:"store"`
	Segment uint64    `json:"segment_size"`
	Log     uint64    `json:"log"`
	Epoch   uint64    `json:"epoch"`
	Begin   mark      `json:"begin"`
	End     mark      `json:"end"`
	Machine uuid.UUID `json:"machine"`
	Format  uint32    `json:"format"`
	Time    int64     `json:"time"` // Unix microseconds
	Size    int64     `json:"size"`
	SHA256  []byte    `json:"sha256"`
}

func (r *Remote) describe(s *remote.Snapshot) *description {
	return &description{Remote: r.id, ID: s.ID, Store: s.Geometry.UUID, Segment: s.Geometry.Size, Log: s.Log,
		Epoch: s.Epoch, Begin: mark(s.Begin), End: mark(s.End), Machine: s.Machine, Format: s.Format,
		Time: s.Time.UnixMicro(), Size: s.Size, SHA256: s.SHA256[:]}
}

// snapshot returns the snapshot that a description describes. It returns errForm if no program can have written the
// description.
func (d *description) snapshot() (s remote.Snapshot, err error) {
	if len(d.SHA256) != sha256.Size || d.Size < 0 {
		return s, errForm
	}
	s = remote.Snapshot{ID: d.ID, Geometry: segment.Geometry{UUID: d.Store, Size: d.Segment}, Log: d.Log,
		Epoch: d.Epoch, Begin: past.Mark(d.Begin), End: past.Mark(d.End), Machine: d.Machine, Format: d.Format,
		Time: time.UnixMicro(d.Time).UTC(), Size: d.Size, SHA256: [32]byte(d.SHA256)}
	if s.Valid() != nil {
		return s, errForm
	}
	return s, nil
}

func metaName(id uuid.UUID) string { return snapshotFolder + id.String() + metaSuffix }

func partName(id uuid.UUID, n int64) string { return fmt.Sprintf("%s%s/%08d", snapshotFolder, id, n) }

// Save stores a snapshot; see remote.Remote. It needs 16 MiB of memory.
func (r *Remote) Save(ctx context.Context, s *remote.Snapshot, body io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := r.tagOf(ctx, metaName(s.ID)); err == nil {
		return fmt.Errorf("%s: snapshot %s: %w: a snapshot with this ID exists", r.Place(), s.ID, errs.ErrInvalid)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	size, sum, err := r.saveParts(ctx, s.ID, body)
	if err == nil {
		s.Size, s.SHA256 = size, sum
		err = s.Valid()
	}
	if err == nil {
		err = r.readBack(ctx, s)
	}
	if err != nil {
		_ = r.dropParts(context.WithoutCancel(ctx), s.ID)
		return err
	}
	b, err := pack(magicSnapshot, r.describe(s), nil)
	if err != nil {
		return err
	}
	if _, err = r.put(ctx, metaName(s.ID), b, absent); refused(err) {
		// The answer to the first request was lost, or another one has described it.
		if there, rerr := r.described(ctx, metaName(s.ID)); rerr == nil && there.SHA256 == s.SHA256 {
			return nil
		}
	}
	return err
}

func (r *Remote) saveParts(ctx context.Context, id uuid.UUID, body io.Reader) (size int64, sum [32]byte, err error) {
	return remote.Parts(body, partSize, func(n int64, part []byte) error {
		// Refused if the answer to the first request was lost; the bytes are read back.
		if _, err := r.put(ctx, partName(id, n), part, absent); err != nil && !refused(err) {
			return err
		}
		return nil
	})
}

// readBack reads the stored bytes of a snapshot, and compares their SHA-256 with that of the bytes that were written.
func (r *Remote) readBack(ctx context.Context, s *remote.Snapshot) error {
	sum, err := remote.Sum(ctx, r.body(ctx, s.ID, s.Size))
	if err == nil && sum != s.SHA256 {
		err = &errs.CorruptionError{Path: r.key(snapshotFolder + s.ID.String()), Offset: -1,
			Err: errors.New("the bytes in the object store differ from the bytes that were stored")}
	}
	return err
}

// Snapshots returns the complete snapshots; see remote.Remote.
func (r *Remote) Snapshots(ctx context.Context) (all []remote.Snapshot, err error) {
	var names []string
	for o, err := range r.names(ctx, snapshotFolder) {
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(o.name, metaSuffix) {
			names = append(names, o.name)
		}
	}
	var bad error
	for _, name := range names {
		s, err := r.described(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // dropped meanwhile
		case errors.Is(err, errs.ErrCorrupt), errors.Is(err, errs.ErrNewerFormat):
			bad = errors.Join(bad, err)
		case err != nil:
			return nil, err
		default:
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b remote.Snapshot) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	return all, bad
}

// described reads the description of a snapshot from the object with the given name, and verifies it.
func (r *Remote) described(ctx context.Context, name string) (s remote.Snapshot, err error) {
	b, _, err := r.get(ctx, name, mostPacked)
	if err != nil {
		return s, err
	}
	d := &description{}
	if _, err := unpack(magicSnapshot, r.key(name), b, d); err != nil {
		return s, err
	}
	if s, err = d.snapshot(); err == nil && (d.Remote != r.id || metaName(s.ID) != name) {
		err = errForm
	}
	if err != nil {
		return s, &errs.CorruptionError{Path: r.key(name), Offset: -1, Err: err}
	}
	return s, nil
}

// Open opens the bytes of a snapshot; see remote.Remote.
func (r *Remote) Open(ctx context.Context, id uuid.UUID) (remote.Body, error) {
	s, err := r.described(ctx, metaName(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: snapshot %s: %w", r.Place(), id, errs.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return r.body(context.WithoutCancel(ctx), id, s.Size), nil
}

// body returns a Body with the bytes of a snapshot. The Body fetches at least 1 MiB at a time, but not beyond the end
// of a part.
func (r *Remote) body(ctx context.Context, id uuid.UUID, size int64) remote.Body {
	return remote.NewBody(ctx, size, func(ctx context.Context, at, want int64) (data []byte, begin int64, err error) {
		part := at / partSize
		want = min(max(want, readAhead), min((part+1)*partSize, size)-at)
		data, err = r.fetch(ctx, id, part, at-part*partSize, want)
		return data, at, err
	})
}

// fetch returns want bytes from the offset from of a part of a snapshot. If the snapshot was removed, the error
// matches errs.ErrNotFound.
func (r *Remote) fetch(ctx context.Context, id uuid.UUID, part, from, want int64) ([]byte, error) {
	opts := minio.GetObjectOptions{}
	if err := opts.SetRange(from, from+want-1); err != nil {
		return nil, err
	}
	name := partName(id, part)
	data, _, err := r.getPart(ctx, name, from, want, opts)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := r.tagOf(ctx, metaName(id)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: snapshot %s: %w: it was dropped", r.Place(), id, errs.ErrNotFound)
		}
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && int64(len(data)) != want {
		return nil, &errs.CorruptionError{Path: r.key(name), Offset: from, Err: errors.Join(errShort, err)}
	}
	return data, err
}

var errShort = errors.New("a part of the snapshot is missing")

// Drop removes a snapshot; see remote.Remote.
func (r *Remote) Drop(ctx context.Context, id uuid.UUID) error {
	if err := r.remove(ctx, metaName(id)); err != nil { // without the description the rest is no snapshot
		return err
	}
	return r.dropParts(ctx, id)
}

func (r *Remote) dropParts(ctx context.Context, id uuid.UUID) error {
	for o, err := range r.names(ctx, snapshotFolder+id.String()+"/") {
		if err == nil {
			err = r.remove(ctx, o.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
