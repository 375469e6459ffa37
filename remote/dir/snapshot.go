package dir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/wal/past"
)

// The description of a snapshot, <id>.meta:
//
//	  0  8 bytes "VARVESNP"
//	  8  uint32 version 1, uint32 program format
//	 16  16 bytes ID of the remote, 16 bytes ID of the snapshot
//	 48  16 bytes UUID of the store, uint64 size of its segments, uint64 epoch of its own log
//	 80  uint64 epoch
//	 88  uint64 position, uint64 chain hash: Begin
//	104  uint64 position, uint64 chain hash: End
//	120  16 bytes machine, int64 time, Unix microseconds
//	144  uint64 size of the body, 32 bytes SHA-256 of it
//	184  32 bytes SHA-256 of everything before
const (
	metaMagic   = "VARVESNP"
	metaVersion = 1
	metaSize    = 216
)

func encodeMeta(s *remote.Snapshot, id uuid.UUID) []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, metaSize), metaMagic...)
	b = le.AppendUint32(b, metaVersion)
	b = le.AppendUint32(b, s.Format)
	b = append(b, id[:]...)
	b = append(b, s.ID[:]...)
	b = appendStore(b, s.Geometry, s.Log)
	b = le.AppendUint64(b, s.Epoch)
	b = appendMark(b, s.Begin)
	b = appendMark(b, s.End)
	b = append(b, s.Machine[:]...)
	b = le.AppendUint64(b, uint64(s.Time.UnixMicro()))
	b = le.AppendUint64(b, uint64(s.Size))
	b = append(b, s.SHA256[:]...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func decodeMeta(b []byte, id uuid.UUID) (s remote.Snapshot, err error) {
	le := binary.LittleEndian
	if len(b) != metaSize || string(b[:8]) != metaMagic || sha256.Sum256(b[:184]) != [32]byte(b[184:]) {
		return s, errSum
	}
	if v := le.Uint32(b[8:]); v > metaVersion {
		return s, &errs.NewerError{Format: uint64(v), Reads: metaVersion}
	}
	if uuid.UUID(b[16:32]) != id {
		return s, errOther
	}
	s.Format, s.ID = le.Uint32(b[12:]), uuid.UUID(b[32:48])
	s.Geometry, s.Log = geometryAt(b[48:])
	s.Epoch, s.Begin, s.End = le.Uint64(b[80:]), markAt(b[88:]), markAt(b[104:])
	s.Machine = uuid.UUID(b[120:136])
	micro := le.Uint64(b[136:])
	s.Size, s.SHA256 = int64(le.Uint64(b[144:])), [32]byte(b[152:184])
	if s.Time = time.UnixMicro(int64(micro)).UTC(); micro > past.MostTime || s.Size < 0 || s.Valid() != nil {
		return s, errContent
	}
	return s, nil
}

func (r *Remote) body(id uuid.UUID) string { return r.path("snapshots", id.String()+".body") }
func (r *Remote) meta(id uuid.UUID) string { return r.path("snapshots", id.String()+".meta") }

// writeSize is the number of bytes of a snapshot that one call writes to the file.
const writeSize = 256 << 10

// Save stores a snapshot; see remote.Remote.
func (r *Remote) Save(ctx context.Context, s *remote.Snapshot, body io.Reader) error {
	if err := r.checkIdentity(); err != nil {
		return err
	}
	err := r.addBy(ctx, func(f io.WriterAt) (err error) {
		s.Size, s.SHA256, err = remote.Parts(body, writeSize, func(n int64, part []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			_, err := f.WriteAt(part, n*writeSize)
			return err
		})
		return err
	}, r.body(s.ID))
	if err != nil {
		return err
	}
	if err = s.Valid(); err == nil {
		err = r.readBack(ctx, s)
	}
	if err != nil {
		_ = r.o.FS.Remove(r.body(s.ID))
		return err
	}
	if err := r.checkIdentity(); err != nil { // a body takes long
		return err
	}
	// The body must be durable before the description.
	if err := r.o.FS.SyncDir(r.path("snapshots")); err != nil {
		return vfs.Failed("syncing", r.path("snapshots"), err)
	}
	if err := r.add(ctx, encodeMeta(s, r.id), r.meta(s.ID)); err != nil {
		return err
	}
	return vfs.Failed("syncing", r.path("snapshots"), r.o.FS.SyncDir(r.path("snapshots")))
}

// readBack reads the stored bytes of a snapshot, and compares their number and SHA-256 with those of the bytes that
// were written.
func (r *Remote) readBack(ctx context.Context, s *remote.Snapshot) error {
	b, err := r.openBody(s.ID)
	if err != nil {
		return err
	}
	sum, err := remote.Sum(ctx, b)
	if err != nil {
		return vfs.Failed("reading", r.body(s.ID), err)
	}
	if b.Size() != s.Size || sum != s.SHA256 {
		return &errs.CorruptionError{Path: r.body(s.ID), Offset: -1, Err: errors.New("the bytes on the disk differ " +
			"from the bytes that were written")}
	}
	return nil
}

// Snapshots returns the complete snapshots; see remote.Remote.
func (r *Remote) Snapshots(ctx context.Context) (list []remote.Snapshot, err error) {
	if err := r.checkIdentity(); err != nil {
		return nil, err
	}
	names, err := r.o.FS.ReadDir(r.path("snapshots"))
	if err != nil {
		return nil, vfs.Failed("reading", r.path("snapshots"), err)
	}
	var bad error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		id, ok := strings.CutSuffix(name, ".meta")
		if !ok {
			continue
		}
		s, err := r.described(r.path("snapshots", name), id)
		switch {
		case errors.Is(err, fs.ErrNotExist): // dropped meanwhile
		case errors.Is(err, errs.ErrCorrupt), errors.Is(err, errs.ErrNewerFormat):
			bad = errors.Join(bad, err)
		case err != nil:
			return nil, err
		default:
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b remote.Snapshot) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	return list, bad
}

func (r *Remote) described(path, id string) (s remote.Snapshot, err error) {
	b, err := vfs.ReadFile(r.o.FS, path, metaSize)
	if err != nil {
		if errors.Is(err, errs.ErrTooLarge) {
			return s, &errs.CorruptionError{Path: path, Offset: -1, Err: err}
		}
		return s, vfs.Failed("reading", path, err)
	}
	s, err = decodeMeta(b, r.id)
	if err == nil && s.ID.String() != id {
		err = errOther
	}
	if newer := (*errs.NewerError)(nil); errors.As(err, &newer) {
		newer.Path = path
		return s, newer
	}
	if err != nil {
		return s, &errs.CorruptionError{Path: path, Offset: -1, Err: err}
	}
	return s, nil
}

type body struct {
	vfs.File
	size int64
}

// Size returns the number of bytes of the snapshot.
func (b *body) Size() int64 { return b.size }

// Open opens the bytes of a snapshot; see remote.Remote.
func (r *Remote) Open(_ context.Context, id uuid.UUID) (remote.Body, error) {
	if err := r.checkIdentity(); err != nil {
		return nil, err
	}
	_, err := r.o.FS.Stat(r.meta(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: snapshot %s: %w", r.Place(), id, errs.ErrNotFound)
	}
	if err != nil {
		return nil, vfs.Failed("reading", r.meta(id), err)
	}
	b, err := r.openBody(id)
	if errors.Is(err, errs.ErrNotFound) {
		if _, merr := r.o.FS.Stat(r.meta(id)); merr == nil { // otherwise it was dropped meanwhile
			return nil, &errs.CorruptionError{Path: r.body(id), Offset: -1,
				Err: fmt.Errorf("the bytes of a snapshot are missing: %w", fs.ErrNotExist)}
		}
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (r *Remote) openBody(id uuid.UUID) (*body, error) {
	f, err := r.o.FS.OpenFile(r.body(id), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: snapshot %s: %w", r.Place(), id, errs.ErrNotFound)
	}
	if err != nil {
		return nil, vfs.Failed("reading", r.body(id), err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, vfs.Failed("reading", r.body(id), errors.Join(err, f.Close()))
	}
	return &body{f, st.Size}, nil
}

// Drop removes a snapshot; see remote.Remote.
func (r *Remote) Drop(_ context.Context, id uuid.UUID) error {
	if err := r.checkIdentity(); err != nil {
		return err
	}
	for _, name := range []string{r.meta(id), r.body(id)} { // without the description the rest is no snapshot
		if err := r.o.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return vfs.Failed("removing", name, err)
		}
		if err := r.o.FS.SyncDir(r.path("snapshots")); err != nil {
			return vfs.Failed("syncing", r.path("snapshots"), err)
		}
	}
	return nil
}
