package backup

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/pack"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal/past"
)

// A packed backup is one file (package pack) with the files of a backup, except files.sha256, which is made of the
// list, and with the first copy of the computed vectors beside the last. It is filled in an unfinished folder, as any
// backup, and moved out of it when it is complete; or it goes to a writer of the caller.

const (
	// packedPart is the name of a packed backup in its unfinished folder.
	packedPart = "packed"
	// computedFirst is the name of the first copy of the computed vectors. The last copy may be missing.
	computedFirst = places.Computed + ".first"
	// outputPiece is the number of bytes that are written to the output at a time.
	outputPiece = 1 << 20
)

// packedForm is a backup in one file.
type packedForm struct {
	s      *Source
	o      repair.BackupOptions
	n      *newFolder // the unfinished folder; nil: the output is a writer of the caller
	out    vfs.File   // the packed file; nil if n is nil
	buffer *bufio.Writer
	seal   io.WriteCloser // encrypts the backup; nil: it is not encrypted
	w      *pack.Writer
	sum    hash.Hash // hash of the bytes of the file
	size   int64
	lists  []*spool
	again  bool            // computed was called before
	copied []copiedSegment // copied segments, to be compared again; nil if readBack reads the log in the file
}

// copiedSegment is a segment of the log that was copied: checkSegments copies it again and compares the hashes.
type copiedSegment struct {
	name string
	read func(out io.WriterAt) error
	sum  [sha256.Size]byte
}

func newPacked(s *Source, t target, o repair.BackupOptions) (form, error) {
	f := &packedForm{s: s, o: o, sum: sha256.New()}
	if o.Output != nil {
		if t.dir != "" {
			return nil, fmt.Errorf("backing up: both a folder and a writer are given: %w → give one", errs.ErrInvalid)
		}
		f.buffer = bufio.NewWriterSize(o.Output, outputPiece)
		return f, nil
	}
	t.dir = filepath.Clean(t.dir)
	switch _, err := vfs.Below(t.fs, t.dir).Stat(t.dir); {
	case err == nil:
		return nil, fmt.Errorf("%s exists: %w → name a new file", t.dir, errs.ErrInvalid)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("examining %s: %w", t.dir, err)
	}
	n, err := makeFolder(t)
	if err != nil {
		return nil, err
	}
	f.n = n
	if f.out, err = n.fs.OpenFile(n.path(packedPart), os.O_RDWR|os.O_CREATE|os.O_EXCL, n.mode); err != nil {
		return nil, errors.Join(fmt.Errorf("making %s: %w", t.dir, err), n.discard(), n.close())
	}
	counted := io.MultiWriter(io.NewOffsetWriter(vfs.Streamed(f.out), 0), f.sum, (*counter)(&f.size))
	f.buffer = bufio.NewWriterSize(counted, outputPiece)
	return f, nil
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func (f *packedForm) begin(info *repair.BackupInfo, _ []string) error {
	var to io.Writer = f.buffer
	if f.o.Seal != nil {
		var err error
		if f.seal, err = f.o.Seal(to); err == nil && f.seal == nil {
			err = errors.New("no writer")
		}
		if err != nil {
			return fmt.Errorf("sealing the backup: %w", err)
		}
		to = f.seal
	}
	from, err := markAt(info.From)
	if err != nil {
		return err
	}
	f.w, err = pack.NewWriter(to, pack.Header{Store: info.Store, LSN: from.LSN, Chain: from.Sum}, workersMost, validName)
	return err
}

func (f *packedForm) computed(ctx context.Context, src vfs.File, whole int64, check func() error,
	keep func() (bool, error)) (size int64, sum string, kept bool, err error) {
	name := places.Computed
	if !f.again {
		name, f.again = computedFirst, true
	}
	s, err := f.w.Create(name, ' ', f.s.Clock())
	if err != nil {
		return 0, "", false, err
	}
	if _, err = copyPieces(ctx, src, whole, s, check); err == nil {
		kept, err = keep()
	}
	if err != nil || !kept {
		s.Drop()
		return 0, "", false, err
	}
	size, hash, err := s.Commit()
	return size, hex.EncodeToString(hash[:]), true, err
}

// spool is a text that is kept in memory, compressed, until everything before it is written.
type spool struct {
	name string
	b    bytes.Buffer
	enc  *zstd.Encoder
	size int64
}

func (s *spool) Write(b []byte) (int, error) {
	n, err := s.enc.Write(b)
	s.size += int64(n)
	return n, err
}

// Sync does nothing: finish writes the text to the backup after everything else, and then syncs the file.
func (s *spool) Sync() error { return nil }

func (s *spool) Close() error { return nil }

// emptyText is a text that a packed backup does not contain: the content is dropped.
type emptyText struct{ io.Writer }

func (emptyText) Sync() error  { return nil }
func (emptyText) Close() error { return nil }

func (f *packedForm) create(name string) (text, error) {
	if name == backupList {
		return emptyText{io.Discard}, nil
	}
	s := &spool{name: name}
	var err error
	if s.enc, err = zstd.NewWriter(&s.b, zstd.WithEncoderConcurrency(1)); err != nil {
		return nil, err
	}
	f.lists = append(f.lists, s)
	return s, nil
}

func (f *packedForm) stage(string, *Document) error { return nil }

func (f *packedForm) enter(name string, mark byte, d *Document, sum [sha256.Size]byte) error {
	return f.w.Add(name, mark, d.Time, d.Bytes, sum)
}

// inOrder is an io.WriterAt for a stream: each write must begin where the one before ended, the first at offset 0.
type inOrder struct {
	w  io.Writer
	at int64
}

func (o *inOrder) WriteAt(b []byte, off int64) (int, error) {
	if off != o.at {
		return 0, fmt.Errorf("cannot write at byte %d, only at the end, which is byte %d: %w", off, o.at,
			errors.ErrUnsupported)
	}
	n, err := o.w.Write(b)
	o.at += int64(n)
	return n, err
}

func (f *packedForm) segment(name string, write func(out io.WriterAt) error) error {
	s, err := f.w.Create(backupWAL+"/"+name, ' ', f.s.Clock())
	if err != nil {
		return err
	}
	if err := write(&inOrder{w: s}); err != nil {
		s.Drop()
		return err
	}
	_, sum, err := s.Commit()
	if err == nil && (f.seal != nil || f.out == nil) {
		f.copied = append(f.copied, copiedSegment{name: name, read: write, sum: sum})
	}
	return err
}

// checkSegments copies the log again, and compares the bytes with those that were written. It is called after the log
// was verified. The comparison finds a segment that was read wrongly, and a segment that was recycled while it was
// copied: nothing holds the log of a read-only store.
func (f *packedForm) checkSegments(ctx context.Context) error {
	for _, c := range f.copied {
		if err := ctx.Err(); err != nil {
			return err
		}
		sum := sha256.New()
		if err := c.read(&inOrder{w: sum}); err != nil {
			return fmt.Errorf("copying %s again: %w", c.name, err)
		}
		if !bytes.Equal(sum.Sum(nil), c.sum[:]) {
			return damagedBackup(backupWAL+"/"+c.name, errors.New("two copies of the segment differ: the log changed "+
				"while it was copied, or was read wrongly → repeat the backup"))
		}
	}
	return nil
}

func (f *packedForm) file(name string, data []byte) error {
	return f.w.Add(name, ' ', f.s.Clock(), data, sha256.Sum256(data))
}

// check does nothing: finish reads the file again.
func (f *packedForm) check(context.Context, *repair.BackupInfo) error { return nil }

// log returns the log of the store: the copied log cannot be read yet. checkSegments or readBack compares the copy
// later.
func (f *packedForm) log(*repair.BackupInfo) *past.Log { return f.s.Log.Past() }

func (f *packedForm) finish(ctx context.Context, info *repair.BackupInfo, manifest []byte, _ []string) error {
	if err := f.checkSegments(ctx); err != nil {
		return fmt.Errorf("verifying the copied log: %w", err)
	}
	for _, s := range f.lists {
		if err := f.unspool(ctx, s); err != nil {
			return err
		}
	}
	if err := f.file(repair.BackupName, manifest); err != nil {
		return err
	}
	err := f.w.Close()
	f.w = nil
	if err == nil && f.seal != nil {
		err = f.seal.Close()
	}
	if err == nil {
		err = f.buffer.Flush()
	}
	if err != nil || f.out == nil {
		return err
	}
	if err := f.out.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w: %w", f.n.dir, errs.ErrSyncFailed, err)
	}
	if err := f.readBack(ctx, info); err != nil {
		return fmt.Errorf("verifying the copy: %w", err)
	}
	return f.n.finishFile(packedPart)
}

func (f *packedForm) unspool(ctx context.Context, s *spool) error {
	if err := s.enc.Close(); err != nil {
		return err
	}
	dec, err := zstd.NewReader(&s.b, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer dec.Close()
	to, err := f.w.Create(s.name, ' ', f.s.Clock())
	if err != nil {
		return err
	}
	b := make([]byte, 64<<10)
	for err == nil {
		var n int
		if n, err = dec.Read(b); n > 0 {
			if _, werr := to.Write(b[:n]); werr != nil {
				err = werr
			}
		}
		err = cmp.Or(ctx.Err(), err)
	}
	if !errors.Is(err, io.EOF) {
		to.Drop()
		return err
	}
	_, _, err = to.Commit()
	return err
}

// readBack reads the file again from the disk. If the backup is sealed, readBack compares only the hash of the bytes,
// because only the owner of the identity can open the file; each block, and the log, was compared before it was sealed.
func (f *packedForm) readBack(ctx context.Context, info *repair.BackupInfo) error {
	h := sha256.New()
	b := make([]byte, copyPiece)
	for at := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.out.ReadAt(b, at)
		h.Write(b[:n])
		if at += int64(n); errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if !bytes.Equal(h.Sum(nil), f.sum.Sum(nil)) {
		return damagedBackup(filepath.Base(f.n.dir), errors.New("the file differs from what was written"))
	}
	if f.seal != nil {
		return nil
	}
	p, err := openPacked(f.n.fs, f.out, f.size, f.n.dir)
	if err != nil {
		return err
	}
	again, err := checkAll(ctx, p, f.n.dir, nil)
	if err == nil && again.Sum != info.Sum {
		err = damagedBackup(repair.BackupName, errors.New("the content differs from what was backed up"))
	}
	return errors.Join(append(p.p.Damage(), err)...)
}

func (f *packedForm) discard() error {
	if f.w != nil {
		f.w.Abort()
		f.w = nil
	}
	if f.n == nil {
		return nil
	}
	return errors.Join(f.closeFile(), f.n.discard())
}

func (f *packedForm) closeFile() (err error) {
	if f.out != nil {
		err, f.out = f.out.Close(), nil
	}
	return err
}

func (f *packedForm) close() error {
	if f.n == nil {
		return nil
	}
	return errors.Join(f.closeFile(), f.n.close())
}

func (f *packedForm) leftovers() []string {
	if f.n == nil {
		return nil
	}
	return f.n.left
}

// finishFile gives a file of the unfinished folder, which is durable, the name that the user asked for, and removes the
// folder. If finishFile cannot remove the folder, the folder stays as a leftover.
func (n *newFolder) finishFile(name string) error {
	if err := n.fs.SyncDir(n.part); err != nil {
		return fmt.Errorf("syncing %s: %w: %w", n.part, errs.ErrSyncFailed, err)
	}
	if err := n.fs.RenameNew(n.path(name), n.dir); err != nil {
		return fmt.Errorf("naming %s: %w", n.dir, err)
	}
	if err := n.fs.SyncDir(filepath.Dir(n.dir)); err != nil {
		return fmt.Errorf("syncing %s: %w: %w", filepath.Dir(n.dir), errs.ErrSyncFailed, err)
	}
	if err := n.discard(); err != nil { // the backup is complete
		n.left = append(n.left, err.Error())
	}
	return nil
}
