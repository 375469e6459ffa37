package backup

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// What makes a store's vectors lies in its index and in its log. The backup has no
// index: so it says what that said (BackupModel), marks the files that still carry the
// vectors of the model before, and has what a re-embedding has computed, without which
// these have none that counts.

// standingTries is how often the index may go on while it is looked at.
const standingTries = 4

// standing finds where the files stand, and what made the vectors there.
func (b *backup) standing(ctx context.Context) (wal.Checkpoint, error) {
	for try := 0; ; try++ {
		c, err := b.s.Log.Checkpoint()
		if err != nil {
			return c, err
		}
		if err := b.s.CatchUp(ctx); err != nil {
			return c, err
		}
		model, ok := b.s.ModelAsOf(c.Flushed.LSN)
		if ok {
			b.model = model
			return c, nil
		}
		if try == standingTries { // the index went on each time
			return c, fmt.Errorf("%w: other processes keep flushing the store: retry", errs.ErrConflict)
		}
		// A process that is between its index and the mark, stopped there or killed, has flush.lock, or had it.
		if b.s.Flush != nil {
			if err := b.s.Flush(ctx); err != nil {
				return c, err
			}
		}
	}
}

// computed copies what a re-embedding has computed so far, if there is anything: more
// of it may be there the next time, or another one's, or none. A process that
// no longer needs it overwrites it before it goes: then the copy of before stays.
func (b *backup) computed(ctx context.Context) error {
	source := filepath.Join(b.s.Dir, filepath.FromSlash(places.Computed))
	in, err := b.s.FS.OpenFile(source, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if b.info.Computed == nil {
		if err := b.n.fs.Mkdir(b.n.path(path.Dir(places.Computed)), b.n.folder); err != nil {
			return err
		}
	}
	next := places.Computed + ".new"
	whole, err := wholeRecords(ctx, in)
	if err != nil {
		return fmt.Errorf("reading %s: %w", places.Computed, err)
	}
	size, sum, err := b.n.copy(ctx, in, whole, next, b.hold.Held)
	var was, is vfs.Info
	if err == nil {
		was, err = in.Stat()
	}
	if err == nil && b.info.Computed != nil {
		if is, err = b.s.FS.Stat(source); errors.Is(err,
			fs.ErrNotExist) || err == nil && (is.Ino != was.Ino || overwritten(in)) {
			return b.n.fs.Remove(b.n.path(filepath.FromSlash(next)))
		}
	}
	if err == nil {
		err = b.n.fs.Rename(b.n.path(filepath.FromSlash(next)), b.n.path(filepath.FromSlash(places.Computed)))
	}
	if err != nil {
		return fmt.Errorf("copying %s: %w", places.Computed, err)
	}
	b.info.Computed = &repair.BackupComputed{Size: size, Sum: sum}
	return nil
}

// The frame of a record of what was computed: its length, and 8 bytes of checksum.
const (
	recordHead = 12
	recordMost = 16 << 20
)

// wholeRecords is up to where a file of records has them, by their lengths. What follows was
// torn, is being overwritten, or is none: a sparse file has terabytes of it.
func wholeRecords(ctx context.Context, f vfs.File) (at int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	var head [recordHead]byte
	for n := 0; ; n++ {
		if n%HeldEvery == 0 && ctx.Err() != nil {
			return at, ctx.Err()
		}
		if k, err := f.ReadAt(head[:], at); k < len(head) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return at, err
		}
		size := int64(binary.LittleEndian.Uint32(head[:]))
		if size == 0 || size > recordMost || at+recordHead+size > info.Size {
			return at, nil
		}
		at += recordHead + size
	}
}

// backedRecords is how much of the file in a backup is copied: all of it, with a torn end
// that backups once had, unless that is longer than any.
func backedRecords(ctx context.Context, f vfs.File) (int64, error) {
	const tornMost = 64 << 20
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	whole, err := wholeRecords(ctx, f)
	if info.Size-whole <= tornMost {
		whole = info.Size
	}
	return whole, err
}

// overwritten reports whether a file of records is being overwritten, which begins at its
// beginning: where that still stands all was read before.
func overwritten(f vfs.File) bool {
	var head [8]byte
	_, err := f.ReadAt(head[:], 0)
	return err == nil && head == [8]byte{}
}

// models says by which models the vectors are where the log begins and now that config.json was
// read, if anybody ever spoke of one: then a program that does not know of this must not restore
// it. A change is written to config.json behind its entry in the log: of none that stands there
// this knows nothing.
func (b *backup) models(ctx context.Context) error {
	if err := b.s.CatchUp(ctx); err != nil {
		return err
	}
	newest := b.s.Model()
	if newest.LSN == 0 && b.info.Computed == nil {
		return nil
	}
	b.info.Format, b.info.Models = withModels, &repair.BackupModel{From: b.model, End: newest}
	return nil
}

// copyPiece is how much of a large file is copied at once.
const copyPiece = 1 << 20

// copy copies the first whole bytes of a file, over one that may be there.
func (n *newFolder) copy(ctx context.Context, in vfs.File, whole int64, name string,
	before func() error) (size int64, sum string, err error) {
	out, err := n.fs.OpenFile(n.path(filepath.FromSlash(name)), os.O_RDWR|os.O_CREATE, n.mode)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	err = out.Truncate(0)
	buf := make([]byte, min(copyPiece, whole))
	for err == nil && size < whole {
		if err = errors.Join(ctx.Err(), before()); err != nil {
			break
		}
		var k int
		if k, err = in.ReadAt(buf[:min(int64(len(buf)), whole-size)], size); k > 0 {
			h.Write(buf[:k])
			if _, werr := out.WriteAt(buf[:k], size); werr != nil {
				err = werr
			}
			size += int64(k)
		}
		if errors.Is(err, io.EOF) {
			err = nil
			break // it was cut off meanwhile
		}
	}
	if err == nil && n.barrier == nil {
		err = out.Sync()
	}
	return size, hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Close())
}

// checkComputed reads the copy of what was computed.
func checkComputed(ctx context.Context, fsys vfs.FS, dir string, info *repair.BackupInfo) error {
	if info.Computed == nil {
		return nil
	}
	f, err := fsys.OpenFile(filepath.Join(dir, filepath.FromSlash(places.Computed)), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) || notAFile(err) {
		return damagedBackup(places.Computed, err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return err
	} else if st.Size != info.Computed.Size { // a sparse file is not read to its end
		return damagedBackup(places.Computed, fmt.Errorf("it has %d bytes, not %d", st.Size, info.Computed.Size))
	}
	h := sha256.New()
	buf := make([]byte, copyPiece)
	size := int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.ReadAt(buf, size)
		h.Write(buf[:n])
		size += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", places.Computed, err)
		}
	}
	if size != info.Computed.Size || hex.EncodeToString(h.Sum(nil)) != info.Computed.Sum {
		return damagedBackup(places.Computed, errors.New("the content differs from what was backed up"))
	}
	return nil
}

// Restored is what a restored store has to know of the vectors in its files: by which
// model they are as of the moment, and which are still those of the model before.
type Restored struct {
	SegmentSize uint64 // of the log

	Model index.Model
	// Settled: config.json is as of this model. Else it may name one of a later moment.
	Settled bool
	Later   index.Model // the newest one that the backup knows
	older   []uint64    // of the names of files, ascending

	Purges  []purgefile.Row   // what the stores before have purged
	Writers []writer.Writer   // that the documents have, by the numbers that the new store gives them
	by      map[uint64]uint32 // these numbers, by the checksums of the names of files
}

// Older reports whether a file, as memories/x.json, has the vector of the model before.
func (r *Restored) Older(name string) bool {
	_, ok := slices.BinarySearch(r.older, xxhash.Sum64String(name))
	return ok
}

// By returns the number of the writer of a file, as memories/x.json; 0 where that is not known.
func (r *Restored) By(name string) uint32 { return r.by[xxhash.Sum64String(name)] }

// settled reports whether the model is that of config.json: none was switched to between, and
// none took another's name where nothing had a content.
func (r *Restored) settled() bool {
	m, l := &r.Model, &r.Later
	return m.Since == l.Since && (m.Name == l.Name || m.Name == "" || l.Name == "")
}

// takeModel notes what an entry says of the model.
func (r *restore) takeModel(e *wal.Entry) error {
	m, err := state.ModelIn(e)
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	r.restored.Model = m
	return nil
}

// note notes which model a document's vector is of. version and number are those of
// a version in the log; of one that lies before it marked says it.
func (r *restore) note(name string, marked bool, version uint64, number int64) {
	model := &r.restored.Model
	older := model.Older(version, number)
	if version == 0 {
		older = model.Switching() && (model.Since >= r.info.From.LSN || marked || r.info.Models == nil)
	}
	if older {
		r.restored.older = append(r.restored.older, xxhash.Sum64String(name))
	}
}

// computed takes along what was computed. Where it is damaged its sound part is taken: each of its
// records has a sum, and one that is missing is computed when needed.
func (r *restore) computed(ctx context.Context) error {
	info := r.info.Computed
	if info == nil {
		return nil
	}
	in, err := r.s.FS.OpenFile(filepath.Join(r.s.Backup, filepath.FromSlash(places.Computed)), os.O_RDONLY, 0)
	var sum string
	var size int64
	if err == nil {
		if err := r.n.fs.Mkdir(r.n.path(path.Dir(places.Computed)), r.n.folder); err != nil {
			return errors.Join(err, in.Close())
		}
		var whole int64
		if whole, err = backedRecords(ctx, in); err == nil {
			size, sum, err = r.n.copy(ctx, in, whole, places.Computed, func() error { return nil })
		}
		err = errors.Join(err, in.Close())
		if err == nil && (size != info.Size || sum != info.Sum) {
			err = errors.New("the content differs from what was backed up")
		}
	}
	switch {
	case err == nil:
		return r.n.fs.SyncDir(r.n.path(path.Dir(places.Computed)))
	case ctx.Err() != nil, errors.Is(err, errs.ErrDiskFull):
		return err
	case r.s.Strict:
		return damagedBackup(places.Computed, err)
	}
	r.noteDamage(places.Computed, reason(err), "the sound part was taken, the rest is computed again")
	r.report.Damaged = append(r.report.Damaged,
		repair.DamagedFile{ID: path.Base(places.Computed), In: path.Dir(places.Computed), Why: err.Error()})
	return nil
}
