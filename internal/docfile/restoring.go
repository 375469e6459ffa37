package docfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// RestoringFile is the path, in a store, of the record of folders whose files are being restored.
const RestoringFile = "wal/restoring"

const (
	mostRestoring = 1 << 20  // maximum number of bytes of RestoringFile
	longRestoring = 64 << 10 // size in bytes from which on RestoringFile is rewritten
)

// restoringLine is one line of RestoringFile.
type restoringLine struct {
	Folder string `json:"folder"`         // path of a folder or of one document, relative to the store, with slashes
	Done   bool   `json:"done,omitempty"` // the restoring of the folder or document has ended
}

// Restoring returns the paths of the folders in f that vanished and whose files are still being restored, and the paths
// of single documents in such folders. The path "" means f itself. If a file in such a folder is missing, the file is
// not restored yet; it was not deleted.
func (f *Folder) Restoring() (names []string, err error) {
	list, _, err := f.l.restoring()
	for _, folder := range list {
		if folder == f.name {
			names = append(names, "")
		} else if name, ok := strings.CutPrefix(folder, f.name+"/"); ok {
			names = append(names, name)
		}
	}
	return names, err
}

// Restore records, durably, that the files of a folder in f are being restored. name is the path of the folder or of a
// single document, or "" for f itself. Restore is called before the folder is created again. The caller holds
// flush.lock.
func (f *Folder) Restore(name string) error {
	f.recording.Lock()
	defer f.recording.Unlock()
	list, size, err := f.l.restoring()
	if err != nil {
		return err
	}
	var lines []byte
	if folder := f.relFolder(name); !slices.Contains(list, folder) {
		list = append(list, folder)
		if lines, err = appendLine(nil, restoringLine{Folder: folder}); err != nil {
			return err
		}
	}
	// Also without a line: a process that was killed may not have synced it.
	return f.l.writeRestoring(lines, size, list)
}

// MakeAgain creates f if it is missing. hasDocs reports whether the store has documents in f. If it is true,
// MakeAgain first records that the files of these documents are to be restored. The caller holds flush.lock.
func (f *Folder) MakeAgain(hasDocs bool) error {
	if err := f.Check(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if hasDocs {
		if err := f.Restore(""); err != nil {
			return err
		}
	}
	if err := f.Make(); err != nil {
		return err
	}
	f.vanished.Store(hasDocs)
	return nil
}

// Restored records, durably, that all files of the given folders in f are restored. The caller holds flush.lock, and
// has made the files durable: see Durable.
func (f *Folder) Restored(names []string) error {
	f.recording.Lock()
	defer f.recording.Unlock()
	list, size, err := f.l.restoring()
	if err != nil {
		return err
	}
	var lines []byte
	for _, name := range names {
		folder := f.relFolder(name)
		if !slices.Contains(list, folder) {
			continue
		}
		list = slices.DeleteFunc(list, func(has string) bool { return has == folder })
		if lines, err = appendLine(lines, restoringLine{Folder: folder, Done: true}); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		return f.l.writeRestoring(lines, size, list)
	}
	path := f.l.path(filepath.FromSlash(RestoringFile))
	if err := f.l.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure("remove", RestoringFile, err)
	}
	if err := f.l.FS.SyncDir(filepath.Dir(path)); err != nil {
		return syncFailure(f.l.rel(filepath.Dir(path)), err)
	}
	return nil
}

// Durable makes the files of the given documents durable. A process may have put these files in place and may have been
// killed before it synced them.
func (f *Folder) Durable(names []string) error {
	b, err := f.l.FS.OpenBarrier(f.l.Root)
	if err == nil {
		if err := errors.Join(b.Sync(), b.Close()); err != nil {
			return syncFailure("the file system of the store", err)
		}
		return nil
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return failure("open a barrier on", f.l.Root, err)
	}
	// Without a barrier, each file is synced before it is put in place: see round.barrier.
	dirs := map[string]bool{filepath.Clean(f.dir): true}
	for _, name := range names {
		for _, dir := range f.ancestors(name) {
			dirs[dir] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := f.l.FS.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return syncFailure(f.l.rel(dir), err)
		}
	}
	return nil
}

// Restores reports whether RestoringFile exists, so that there may be folders whose files are being restored.
func (l Layout) Restores() bool {
	_, err := l.FS.Stat(l.path(filepath.FromSlash(RestoringFile)))
	return !errors.Is(err, fs.ErrNotExist)
}

// Vanished reports whether a folder that must exist was missing, and was created again, since the previous call of
// Vanished.
func (f *Folder) Vanished() bool { return f.vanished.Swap(false) }

// relFolder returns the path of a folder in f relative to the store; name is "" for f itself.
func (f *Folder) relFolder(name string) string {
	if name == "" {
		return f.name
	}
	return f.rel(name)
}

// restoring returns the folders in RestoringFile whose files are still being restored, and the size of RestoringFile.
// It ignores incomplete and invalid lines.
func (l Layout) restoring() (folders []string, size int64, err error) {
	data, err := vfs.ReadFile(l.FS, l.path(filepath.FromSlash(RestoringFile)), mostRestoring)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if errors.Is(err, errs.ErrTooLarge) || errors.Is(err, errs.ErrInvalid) {
		return nil, 0, fmt.Errorf("reading the list of folders that are being restored: %w: the store did not write "+
			"this file; set adopt_deletions to false in config.json, so that missing files are restored, and move the "+
			"file away", err)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading the list of folders that are being restored: %w", err)
	}
	for line := range bytes.Lines(data) {
		var is restoringLine
		if json.Unmarshal(line, &is) != nil || is.Folder == "" {
			continue
		}
		folders = slices.DeleteFunc(folders, func(has string) bool { return has == is.Folder })
		if !is.Done {
			folders = append(folders, is.Folder)
		}
	}
	return folders, int64(len(data)), nil
}

func appendLine(lines []byte, entry restoringLine) ([]byte, error) {
	line, err := json.Marshal(entry)
	return append(append(lines, line...), '\n'), err
}

// writeRestoring appends lines to RestoringFile, whose present size is size, and makes the file durable. It also makes
// the file durable if lines is empty. If lines is not empty and the file has longRestoring bytes or more,
// writeRestoring instead replaces the file by a new one that lists only folders, the folders that are still being
// restored.
func (l Layout) writeRestoring(lines []byte, size int64, folders []string) error {
	path := l.path(filepath.FromSlash(RestoringFile))
	if size >= longRestoring && len(lines) > 0 {
		return l.renewRestoring(path, folders)
	}
	file, err := l.FS.OpenFile(path, os.O_WRONLY|os.O_CREATE, l.fileMode())
	if err != nil {
		return failure("open", RestoringFile, err)
	}
	defer func() { _ = file.Close() }()
	if len(lines) > 0 {
		// The line break before them ends a line that is not complete.
		if _, err := file.WriteAt(slices.Concat([]byte("\n"), lines), size); err != nil {
			return failure("write", RestoringFile, err)
		}
	}
	if err := file.Sync(); err != nil {
		return syncFailure(RestoringFile, err)
	}
	if err := l.FS.SyncDir(filepath.Dir(path)); err != nil {
		return syncFailure(l.rel(filepath.Dir(path)), err)
	}
	return nil
}

// renewRestoring replaces RestoringFile by one that has only the folders that are being restored.
func (l Layout) renewRestoring(path string, folders []string) (err error) {
	var lines []byte
	for _, folder := range folders {
		if lines, err = appendLine(lines, restoringLine{Folder: folder}); err != nil {
			return err
		}
	}
	// The next recovery removes the file that a killed process leaves: see wal.IsMaking.
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf("%d-restoring.new", l.FS.Host().PID))
	if err := vfs.WriteDurable(l.FS, temp, path, lines, l.fileMode()); err != nil {
		return failure("write", RestoringFile, err)
	}
	return nil
}
