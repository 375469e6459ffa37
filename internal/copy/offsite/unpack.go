package offsite

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/pack"
	"github.com/varve-db/varve/internal/vfs"
)

const (
	// unpackers is the number of goroutines that write files of a snapshot. Most of them wait for the disk, above all
	// on a file system without a barrier, where each file is synced by itself.
	unpackers = 8
	// groupSize is the number of consecutive files that one goroutine writes. It is so small that the files which all
	// goroutines write at one time are in fewer blocks of the snapshot than a pack.Reader keeps decompressed.
	groupSize = 32
	// wholeMost is the size of the largest file that is read into memory as a whole.
	wholeMost = 1 << 20
)

// unpacking writes the files of a snapshot. If the file system has a barrier, one sync makes all files durable at the
// end; otherwise each file is synced.
type unpacking struct {
	f       *filling
	p       *pack.Reader
	barrier vfs.Barrier // nil: the file system has none
	folders map[string]bool
}

// files writes all files of the snapshot into the folder of the target, durably. If the file system has a barrier, one
// sync makes the files durable; in any case the folders are synced at the end.
func (f *filling) files(ctx context.Context) (err error) {
	body, p, err := f.packed(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	u := &unpacking{f: f, p: p, folders: map[string]bool{}}
	// Before the first file: a barrier reports only errors of what was written since it was opened.
	if u.barrier, err = f.t.FS.OpenBarrier(f.t.Dir); errors.Is(err, errors.ErrUnsupported) {
		u.barrier, err = nil, nil
	}
	if err != nil {
		return err
	}
	if u.barrier != nil {
		defer func() { err = errors.Join(err, u.barrier.Close()) }()
	}
	if err := u.all(ctx); err != nil {
		return err
	}
	if u.barrier != nil {
		if err := u.barrier.Sync(); err != nil {
			return fmt.Errorf("syncing %s: %w: %w", f.t.Dir, errs.ErrSyncFailed, err)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(u.folders)) {
		if err := f.t.FS.SyncDir(folder); err != nil {
			return fmt.Errorf("syncing %s: %w: %w", folder, errs.ErrSyncFailed, err)
		}
	}
	if f.t.Progress != nil {
		f.t.Progress(int64(p.Files()), int64(p.Files()))
	}
	return nil
}

// all unpacks all files of the snapshot, on several goroutines; if the target requires it (Inline), in the caller's
// goroutine.
func (u *unpacking) all(ctx context.Context) error {
	if u.f.t.Inline {
		buf := []byte(nil)
		return u.list(func(group []pack.File) (err error) {
			buf, err = u.group(group, buf)
			return errors.Join(err, ctx.Err())
		})
	}
	work, ctx := errgroup.WithContext(ctx)
	groups := make(chan []pack.File)
	for range unpackers {
		work.Go(func() (err error) {
			buf := []byte(nil)
			for group := range groups {
				if buf, err = u.group(group, buf); err != nil {
					return err
				}
			}
			return nil
		})
	}
	work.Go(func() error {
		defer close(groups)
		return u.list(func(group []pack.File) error {
			select {
			case groups <- group:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	return work.Wait()
}

// group unpacks the given files, one after the other. buf is a buffer that all of them use. group returns buf, possibly
// enlarged, for the next call.
func (u *unpacking) group(files []pack.File, buf []byte) ([]byte, error) {
	for i := range files {
		var err error
		if buf, err = u.file(&files[i], buf); err != nil {
			return buf, vfs.Failed("writing", u.f.path(files[i].Name), err)
		}
	}
	return buf, nil
}

// list creates the folders of the files, and calls write with one group of files after the other.
func (u *unpacking) list(write func(group []pack.File) error) error {
	n := int64(0)
	group := make([]pack.File, 0, groupSize)
	send := func() error {
		if err := write(group); err != nil {
			return err
		}
		group = make([]pack.File, 0, groupSize)
		if u.f.t.Progress != nil {
			u.f.t.Progress(n, int64(u.p.Files()))
		}
		return nil
	}
	for entry, err := range u.p.All() {
		if err != nil {
			return err
		}
		if folder := filepath.Dir(u.f.path(entry.Name)); !u.folders[folder] {
			if err := vfs.MkdirAll(u.f.t.FS, folder, u.f.t.FolderMode); err != nil {
				return err
			}
			u.folders[folder] = true
		}
		n++
		if group = append(group, entry); len(group) == groupSize {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

var errFileSum = errors.New("checksum mismatch")

// file unpacks one file of the snapshot. It reads a small file into buf. It returns buf, possibly enlarged, for the
// next call.
func (u *unpacking) file(entry *pack.File, buf []byte) ([]byte, error) {
	body := u.p.Body(*entry)
	damaged := &errs.CorruptionError{Path: entry.Name, Offset: -1, Err: errFileSum}
	if entry.Size > wholeMost {
		return buf, u.write(entry, func(out vfs.File) error {
			sum := sha256.New()
			_, err := io.Copy(io.MultiWriter(io.NewOffsetWriter(vfs.Streamed(out), 0), sum),
				io.NewSectionReader(body, 0, entry.Size))
			if err == nil && [32]byte(sum.Sum(nil)) != entry.Sum {
				err = damaged
			}
			return err
		})
	}
	buf = slices.Grow(buf[:0], int(entry.Size))[:entry.Size]
	if n, err := body.ReadAt(buf, 0); n < len(buf) {
		return buf, err
	}
	if sha256.Sum256(buf) != entry.Sum {
		return buf, damaged
	}
	return buf, u.write(entry, func(out vfs.File) error {
		_, err := out.WriteAt(buf, 0)
		return err
	})
}

// write creates the file of an entry. content writes the bytes of the file to out. write then sets the modification
// time and, if the file system has no barrier, syncs the file.
func (u *unpacking) write(entry *pack.File, content func(out vfs.File) error) error {
	out, err := vfs.CreateNew(u.f.t.FS, u.f.path(entry.Name), u.f.t.FileMode)
	if err != nil {
		return err
	}
	err = content(out)
	if err == nil && !entry.Mtime.IsZero() {
		err = out.SetMtime(entry.Mtime)
	}
	if err == nil && u.barrier == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
