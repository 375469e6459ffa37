package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal/past"
)

// faultsMost is the maximum number of faults in one backup that Check returns.
const faultsMost = 1000

// Check reads a backup completely. The backup is a folder or a packed file; if the file is sealed, unseal opens it.
// Check returns the faults joined, in the order in which it found them: each is a *errs.CorruptionError that names the
// file.
func Check(ctx context.Context, fsys vfs.FS, dir string, unseal repair.Unseal,
	progress func(done, total int64)) (info repair.BackupInfo, err error) {
	from, err := open(fsys, dir, unseal)
	if err != nil {
		return info, err
	}
	info, err = checkAll(ctx, from, dir, progress)
	if more := errors.Join(append(from.damage(), from.close())...); more != nil {
		err = errors.Join(more, err)
	}
	return info, err
}

// checkAll reads all files of a backup.
func checkAll(ctx context.Context, fsys vfs.FS, dir string, progress func(done, total int64)) (repair.BackupInfo,
	error) {
	info, err := ReadInfo(fsys, dir)
	if err != nil {
		return info, err
	}
	var faults []error
	note := func(err error) error { // a non-nil result ends the check
		if !holeIn(err) || len(faults) == faultsMost {
			return err
		}
		faults = append(faults, err)
		return nil
	}
	err = checkDocuments(ctx, fsys, dir, &info, progress, note)
	for _, check := range []func() error{
		func() error { return checkComputed(ctx, fsys, dir, &info) },
		func() error { return checkWriters(fsys, dir, &info) },
		func() error { return checkPurges(fsys, dir, &info) },
		func() error { return checkOwnLog(ctx, fsys, dir, &info) },
	} {
		if err == nil {
			err = note(check())
		}
	}
	return info, errors.Join(append(faults, err)...)
}

// checkOwnLog verifies the log of a backup.
func checkOwnLog(ctx context.Context, fsys vfs.FS, dir string, info *repair.BackupInfo) error {
	past := &past.Log{FS: fsys, Dir: filepath.Join(dir, backupWAL), Geometry: geometryOf(info)}
	from, err := markAt(info.From)
	if err != nil {
		return damagedBackup(repair.BackupName, err)
	}
	end, err := markAt(info.End)
	if err != nil {
		return damagedBackup(repair.BackupName, err)
	}
	return checkLog(ctx, past, from, end)
}

// checkDocuments reads every file that the list of a backup names. It calls fault with each error, and continues if
// fault returns nil.
func checkDocuments(ctx context.Context, fsys vfs.FS, dir string, info *repair.BackupInfo,
	progress func(done, total int64), fault func(error) error) error {
	n := int64(0)
	nothing := func(struct{}) int64 { return 0 }
	ahead := newAhead(workersFor(filesOf(info)), nothing, func(f listedFile) (struct{}, error) {
		_, _, err := f.read(fsys, dir)
		return struct{}{}, err
	}, func(_ listedFile, _ struct{}, err error) error {
		if err != nil {
			if err = fault(err); err != nil {
				return err
			}
		}
		if n++; progress != nil && n%HeldEvery == 0 {
			progress(n, filesOf(info))
		}
		return nil
	})
	defer ahead.close()
	for f, err := range listed(fsys, dir, info) {
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if err != nil {
			err = errors.Join(ahead.finish(), fault(err))
		} else {
			err = ahead.add(f)
		}
		if err != nil {
			return err
		}
	}
	return ahead.finish()
}

// isListed reports whether name is a possible path of a document or a scope in a backup.
func isListed(name string) bool {
	folder, base, _ := strings.Cut(name, "/")
	k := kind.Filing(folder)
	return k != nil && base != "" && places.Local(name) == nil && (k.Tree() || !strings.Contains(base, "/"))
}

// documentMost returns the maximum number of bytes of a listed file: the maximum that a store reads for a document of
// that kind. name is the path of the file in the backup.
func documentMost(name string) int64 {
	folder, _, _ := strings.Cut(name, "/")
	switch k := kind.Filing(folder); {
	case k == nil || k == kind.Scopes:
		return places.DocumentMost
	case k.MostBytes > 0:
		return k.MostBytes
	default:
		return places.StoredMost
	}
}

// listedFile is a line of files.sha256.
type listedFile struct {
	name  string // path in the backup, such as memories/x.json
	hash  [sha256.Size]byte
	older bool // the file's vector is by the previous model; see olderMark
}

// read returns the file's bytes, after comparing them with the hash in the list.
func (f *listedFile) read(fsys vfs.FS, dir string) ([]byte, vfs.Info, error) {
	path, err := places.Enter(fsys, dir, f.name)
	var info vfs.Info
	if err == nil {
		info, err = fsys.Stat(path)
	}
	var b []byte
	if err == nil {
		b, err = vfs.ReadText(fsys, path, documentMost(f.name))
	}
	if errors.Is(err, fs.ErrNotExist) || notAFile(err) {
		return nil, info, damagedBackup(f.name, err)
	}
	if err != nil {
		return nil, info, fmt.Errorf("reading %s: %w", path, err)
	}
	if sha256.Sum256(b) != f.hash {
		return nil, info, damagedBackup(f.name, errors.New("the content differs from what was backed up"))
	}
	return b, info, nil
}

// notAFile reports whether err means that a backup is damaged: a folder, a link or another object has taken the place
// of a file, or a file the place of a folder; a file is too large, has only zeros or cannot be read from the medium; or
// a checksum does not match.
func notAFile(err error) bool {
	return errors.Is(err, errs.ErrCorrupt) || errors.Is(err, vfs.ErrNotRegular) || errors.Is(err, syscall.EIO) ||
		errors.Is(err, syscall.ENOTDIR) || errors.Is(err, errs.ErrTooLarge) || errors.Is(err, vfs.ErrZeros)
}

// listed yields the lines of a backup's list of files. At the end it yields an error if the list does not match the
// checksum in backup.json.
func listed(fsys vfs.FS, dir string, info *repair.BackupInfo) func(yield func(listedFile, error) bool) {
	return func(yield func(listedFile, error) bool) {
		fail := func(err error) { yield(listedFile{}, err) }
		f, err := fsys.OpenFile(filepath.Join(dir, backupList), os.O_RDONLY, 0)
		if errors.Is(err, fs.ErrNotExist) || notAFile(err) {
			fail(damagedBackup(backupList, err))
			return
		}
		if err != nil {
			fail(err)
			return
		}
		defer f.Close()
		sum := sha256.New()
		in := bufio.NewScanner(io.TeeReader(io.NewSectionReader(f, 0, 1<<62), sum))
		n := int64(0)
		for in.Scan() {
			var l listedFile
			hash, name, ok := strings.Cut(in.Text(), " ")
			if ok = ok && name != "" && (name[0] == ' ' || name[0] == olderMark); ok {
				l.older, name = name[0] == olderMark, name[1:]
			}
			_, err := hex.Decode(l.hash[:], []byte(hash[:min(len(hash), 2*len(l.hash))]))
			if !ok || err != nil || len(hash) != 2*len(l.hash) || !isListed(name) {
				fail(damagedBackup(backupList, fmt.Errorf("line %d does not have a hash and a file", n+1)))
				return
			}
			l.name = name
			n++
			if !yield(l, nil) {
				return
			}
		}
		switch {
		case errors.Is(in.Err(), bufio.ErrTooLong):
			fail(damagedBackup(backupList, fmt.Errorf("line %d does not have a hash and a file", n+1)))
		case in.Err() != nil:
			fail(fmt.Errorf("reading %s: %w", filepath.Join(dir, backupList), in.Err()))
		case hex.EncodeToString(sum.Sum(nil)) != info.List || n != filesOf(info):
			fail(&errs.CorruptionError{Path: backupList, Offset: -1,
				Err: errors.New("the list does not match the checksum in backup.json")})
		}
	}
}
