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

// The models of a store's vectors are recorded in its index and its log. A backup has no index.
// Instead it has the models in backup.json (BackupModel), marks the files with vectors of the
// previous model, and has the results of a re-embedding, which are the vectors by which those
// documents are searched.

// standingTries is the maximum number of times that backup.standing tries again because the index was replaced
// meanwhile.
const standingTries = 4

// standing returns the checkpoint, which has the position up to which the store's files are flushed, and sets the
// field model to the embedding model as of that position.
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
		if try == standingTries { // the index was replaced during each try
			return c, fmt.Errorf("%w: other processes keep flushing the store → retry", errs.ErrConflict)
		}
		// A process may be stopped, or was killed, between writing the index and the mark: Flush
		// completes its work.
		if b.s.Flush != nil {
			if err := b.s.Flush(ctx); err != nil {
				return c, err
			}
		}
	}
}

// computed copies the results of a running re-embedding, if there are any. The backup calls it twice: the second call
// may find more results, the results of another re-embedding, or none. A process that no longer needs the file of
// results overwrites the file before it removes it. If computed finds an overwritten file, it keeps the copy that the
// earlier call made.
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
	whole, err := wholeRecords(ctx, in)
	if err != nil {
		return fmt.Errorf("reading %s: %w", places.Computed, err)
	}
	again := b.info.Computed != nil
	size, sum, kept, err := b.f.computed(ctx, in, whole, b.hold.Held, func() (bool, error) {
		was, err := in.Stat()
		if err != nil || !again {
			return true, err
		}
		is, err := b.s.FS.Stat(source)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil && is.Ino == was.Ino && !overwritten(in), err
	})
	if err != nil {
		return fmt.Errorf("copying %s: %w", places.Computed, err)
	}
	if kept {
		b.info.Computed = &repair.BackupComputed{Size: size, Sum: sum}
	}
	return nil
}

// Sizes of parts of a record of computed results: a record begins with a frame, its length and 8 bytes of checksum.
const (
	recordHead = 12
	recordMost = 16 << 20
)

// wholeRecords returns the offset at which the complete records of a file end, judging by the lengths that the
// records have. The bytes after this offset are part of a torn record, are being overwritten, or are no records: a
// sparse file may have terabytes of zeros.
func wholeRecords(ctx context.Context, f vfs.File) (end int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	var head [recordHead]byte
	for n := 0; ; n++ {
		if n%HeldEvery == 0 && ctx.Err() != nil {
			return end, ctx.Err()
		}
		if k, err := f.ReadAt(head[:], end); k < len(head) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return end, err
		}
		size := int64(binary.LittleEndian.Uint32(head[:]))
		if size == 0 || size > recordMost || end+recordHead+size > info.Size {
			return end, nil
		}
		end += recordHead + size
	}
}

// backedRecords returns the number of bytes to copy from the file of computed results in a backup. That is the whole
// file, including a torn end, which backups by earlier versions may have, unless the torn end is too long.
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

// overwritten reports whether a file of records is being overwritten. Overwriting starts at the beginning of the file:
// as long as the beginning is unchanged, everything that was read before was intact.
func overwritten(f vfs.File) bool {
	var head [8]byte
	_, err := f.ReadAt(head[:], 0)
	return err == nil && head == [8]byte{}
}

// models records, in the description of the backup, the embedding model at the beginning of the copied log and the
// newest one. If the store ever named a model, models raises the format of the backup, so that programs that do not
// know models refuse the backup. A change of the model is written to config.json after its entry in the log, and
// models is called after config.json was read. So config.json cannot name a model that is missing here.
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

// copyPiece is the number of bytes of a large file that are copied at a time.
const copyPiece = 1 << 20

// copy copies the first whole bytes of src to the file name of the backup, and replaces an existing file. It calls
// check before each piece; an error of check ends the copying. copy returns the size of the copy in bytes and its
// sha256, as hexadecimal digits.
func (n *newFolder) copy(ctx context.Context, src vfs.File, whole int64, name string,
	check func() error) (size int64, sum string, err error) {
	out, err := n.fs.OpenFile(n.path(filepath.FromSlash(name)), os.O_RDWR|os.O_CREATE, n.mode)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	if err = out.Truncate(0); err == nil {
		size, err = copyPieces(ctx, src, whole, io.MultiWriter(h, io.NewOffsetWriter(out, 0)), check)
	}
	if err == nil && n.barrier == nil {
		err = out.Sync()
	}
	return size, hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Close())
}

// copyPieces copies the first whole bytes of src to out, or fewer if src was truncated meanwhile. It calls check
// before each piece; an error of check ends the copying. copyPieces returns the number of bytes copied.
func copyPieces(ctx context.Context, src vfs.File, whole int64, out io.Writer, check func() error) (size int64,
	err error) {
	buf := make([]byte, min(copyPiece, whole))
	for err == nil && size < whole {
		if err = errors.Join(ctx.Err(), check()); err != nil {
			break
		}
		var k int
		if k, err = src.ReadAt(buf[:min(int64(len(buf)), whole-size)], size); k > 0 {
			if _, werr := out.Write(buf[:k]); werr != nil {
				err = werr
			}
			size += int64(k)
		}
		if errors.Is(err, io.EOF) {
			return size, nil
		}
	}
	return size, err
}

// checkComputed verifies the copy of the results of a re-embedding.
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
	} else if st.Size != info.Computed.Size { // do not read a sparse file to its end
		return damagedBackup(places.Computed, fmt.Errorf("the file has %d bytes, but %d were backed up", st.Size,
			info.Computed.Size))
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

// Restored describes the vectors in the files of a restored store: the model as of the restored moment, and the files
// whose vectors are still by the previous model.
type Restored struct {
	SegmentSize uint64 // size of a segment of the log, in bytes

	Model index.Model
	// Settled reports whether config.json names this model. If it is false, config.json may name a later model.
	Settled bool
	Later   index.Model // the newest embedding model that the backup records
	older   []uint64    // hashes of the names of files with vectors of the previous model, ascending

	Purges  []purgefile.Row   // purges that the backup or the living store had recorded
	Writers []writer.Writer   // writers of the documents, with their numbers in the new store
	by      map[uint64]uint32 // number of a file's writer, by the hash of the file's name
}

// Older reports whether a file, such as memories/x.json, has a vector of the previous model.
func (r *Restored) Older(name string) bool {
	_, ok := slices.BinarySearch(r.older, xxhash.Sum64String(name))
	return ok
}

// By returns the number of the writer of a file, such as memories/x.json; 0 if unknown.
func (r *Restored) By(name string) uint32 { return r.by[xxhash.Sum64String(name)] }

// settled reports whether config.json names the restored model. The result is false if the model was switched after
// the restored moment, or if only its name was changed to another name, as a re-embedding does in a store without
// contents.
func (r *Restored) settled() bool {
	m, l := &r.Model, &r.Later
	return m.Since == l.Since && (m.Name == l.Name || m.Name == "" || l.Name == "")
}

// takeModel uses the model in an entry of the log as the restored model, if the entry has one.
func (r *restore) takeModel(e *wal.Entry) error {
	m, err := state.ModelIn(e)
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	r.restored.Model = m
	return nil
}

// note records whether the vector in the file called name is by the previous model. If the version of the document is
// from a log, version is its log position, and number is the number of its vector. Otherwise version is 0, and marked
// reports whether the list of the backup marks the vector as one by the previous model.
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

// computed copies the results of a re-embedding to the restored store. Of a damaged file it copies the sound part:
// each record has a checksum, and missing records are computed again when needed.
func (r *restore) computed(ctx context.Context) error {
	info := r.info.Computed
	if info == nil {
		return nil
	}
	in, err := r.from.OpenFile(filepath.Join(r.s.Backup, filepath.FromSlash(places.Computed)), os.O_RDONLY, 0)
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
	r.noteDamage(places.Computed, reason(err), "the undamaged part was restored, the rest is computed again")
	r.report.Damaged = append(r.report.Damaged,
		repair.DamagedFile{ID: path.Base(places.Computed), In: path.Dir(places.Computed), Why: err.Error()})
	return nil
}
