package backup

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/pack"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/vector"
)

// sealedMagic begins every file that the program age, or its library, has encrypted.
const sealedMagic = "age-encryption.org/"

// source is the file system in which the files of a backup are read.
type source struct {
	vfs.FS
	p *packedFS // packed backup; nil: the backup is a folder
}

func (s source) damage() []error {
	if s.p == nil {
		return nil
	}
	return s.p.p.Damage()
}

func (s source) close() error {
	if s.p == nil {
		return nil
	}
	return s.p.file.Close()
}

// open opens the backup at path. The returned source reads a folder as it is, and a packed file as if it were that
// folder.
func open(fsys vfs.FS, path string, unseal repair.Unseal) (source, error) {
	info, err := fsys.Stat(path)
	if err != nil || !info.Mode.IsRegular() {
		return source{FS: fsys}, nil // ReadInfo reports it
	}
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return source{}, fmt.Errorf("reading the backup: %w", err)
	}
	p, err := openGiven(fsys, f, info.Size, path, unseal)
	if err != nil {
		return source{}, errors.Join(err, f.Close())
	}
	return source{p, p}, nil
}

func openGiven(fsys vfs.FS, f vfs.File, size int64, path string, unseal repair.Unseal) (*packedFS, error) {
	head := make([]byte, 64)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the backup %s: %w", path, err)
	}
	var r io.ReaderAt = f
	switch head = head[:n]; {
	case !isSealed(head):
	case unseal == nil:
		return nil, fmt.Errorf("%s is sealed: %w → give the file with the identity (private key) that opens the backup",
			path, errs.ErrInvalid)
	default:
		r, size, err = unseal(failing{f}, size)
		if failed := (*readError)(nil); errors.As(err, &failed) {
			return nil, fmt.Errorf("reading the sealed backup %s: %w", path, failed.err)
		}
		if err != nil {
			return nil, fmt.Errorf("opening the sealed backup %s: %w", path, err)
		}
		r = &unsealed{r, filepath.Base(path)}
	}
	if !isSealed(head) && !pack.Is(head) && !pack.Ends(f, size) {
		return nil, fmt.Errorf("%s: %w: neither a folder made by a backup nor a packed backup", path, errs.ErrNoStore)
	}
	p, err := openPacked(fsys, r, size, path)
	if err != nil {
		return nil, err
	}
	p.file = f
	h := p.p.Header()
	if i, err := ReadInfo(p, path); err == nil && h != (pack.Header{}) && (h.Store != i.Store || h.LSN != i.From.LSN) {
		return nil, damagedBackup(filepath.Base(path), errors.New("the header belongs to another backup than the "+
			"content"))
	}
	return p, nil
}

// readError is an error of reading the sealed file itself. The code that decrypts the file wraps it in its own errors.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// failing is a reader that converts each error other than io.EOF to a readError.
type failing struct{ io.ReaderAt }

func (f failing) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &readError{err}
	}
	return n, err
}

// unsealed is the plain text of a sealed file. Bytes that can be read but not decrypted are damage.
type unsealed struct {
	io.ReaderAt
	name string
}

func (u *unsealed) ReadAt(b []byte, off int64) (int, error) {
	n, err := u.ReaderAt.ReadAt(b, off)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if failed := (*readError)(nil); errors.As(err, &failed) {
		return n, failed.err
	}
	return n, &errs.CorruptionError{Path: u.name, Offset: -1,
		Err: fmt.Errorf("the encrypted backup cannot be decrypted at byte %d of its plain content: %w", off, err)}
}

func isSealed(head []byte) bool { return strings.HasPrefix(string(head), sealedMagic) }

// PackedTime returns the modification time of the file at path if this file begins and ends as a packed backup
// does, or begins as a sealed backup does. For any other file, such as half a packed backup, it returns the zero
// time.
func PackedTime(fsys vfs.FS, path string) time.Time {
	info, err := fsys.Stat(path)
	if err != nil || !info.Mode.IsRegular() {
		return time.Time{}
	}
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return time.Time{}
	}
	defer f.Close()
	head := make([]byte, 64)
	n, _ := f.ReadAt(head, 0)
	if head = head[:n]; !isSealed(head) && !(pack.Is(head) && pack.Ends(f, info.Size)) {
		return time.Time{}
	}
	return info.Mtime
}

// openPacked opens a packed backup as a file system in which path is a folder with the files of the backup.
func openPacked(fsys vfs.FS, r io.ReaderAt, size int64, path string) (*packedFS, error) {
	p, err := pack.Open(r, size, filepath.Base(path), validName)
	if err != nil {
		return nil, err
	}
	return &packedFS{FS: fsys, at: filepath.Clean(path), p: p}, nil
}

// validName returns an error for a name that no file of a packed backup has.
func validName(name string) error {
	dir, base := path.Split(name)
	switch name {
	case repair.BackupName, backupBy, backupPurges, places.Computed, computedFirst:
		return nil
	}
	if _, ok := segment.ParseName(base); ok && dir == backupWAL+"/" || isListed(name) {
		return nil
	}
	return errors.New("a backup has no file of this name")
}

// packedFS is a file system in which the path of a packed backup is a folder that cannot be changed. All other paths
// are those of the embedded file system.
type packedFS struct {
	vfs.FS
	at   string
	p    *pack.Reader
	file vfs.File // the open packed file
}

// below returns the path of a name in the backup, "." for the backup itself; false if the name is not in the backup.
func (p *packedFS) below(name string) (string, bool) {
	name = filepath.Clean(name)
	if name == p.at {
		return ".", true
	}
	rel, ok := strings.CutPrefix(name, p.at+string(filepath.Separator))
	return filepath.ToSlash(rel), ok
}

func (p *packedFS) lookup(rel string) (pack.File, error) {
	f, err := p.p.Lookup(rel)
	if rel == places.Computed && errors.Is(err, fs.ErrNotExist) {
		return p.p.Lookup(computedFirst)
	}
	return f, err
}

// OpenFile implements vfs.FS.
func (p *packedFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	rel, ok := p.below(name)
	switch {
	case !ok:
		return p.FS.OpenFile(name, flag, perm)
	case flag != os.O_RDONLY:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	case rel == backupList:
		return &packedList{packedFile: packedFile{name: name}, p: p.p}, nil
	}
	f, err := p.lookup(rel)
	if err != nil {
		return nil, err
	}
	return &packedFile{ReaderAt: p.p.Body(f), name: name, info: infoOf(&f)}, nil
}

func infoOf(f *pack.File) vfs.Info {
	return vfs.Info{Size: f.Size, Mtime: f.Mtime, Mode: 0o600, Nlink: 1}
}

// Stat implements vfs.FS.
func (p *packedFS) Stat(name string) (vfs.Info, error) {
	rel, ok := p.below(name)
	if !ok {
		return p.FS.Stat(name)
	}
	folder := vfs.Info{Mode: fs.ModeDir | 0o700, Nlink: 1}
	if rel == "." || rel == backupWAL || rel == vector.Folder || kind.Filing(rel) != nil {
		return folder, nil
	}
	f, err := p.lookup(rel)
	if errors.Is(err, fs.ErrNotExist) && isListed(rel) {
		if top, _, _ := strings.Cut(rel, "/"); kind.Filing(top).Tree() {
			return folder, nil // whether it has a file shows when that is opened
		}
	}
	return infoOf(&f), err
}

// ReadDir implements vfs.FS.
func (p *packedFS) ReadDir(name string) ([]string, error) {
	rel, ok := p.below(name)
	if !ok {
		return p.FS.ReadDir(name)
	}
	prefix := rel + "/"
	if rel == "." {
		prefix = ""
	}
	names := map[string]bool{}
	for f, err := range p.p.All() {
		if err != nil {
			return nil, err
		}
		if rest, in := strings.CutPrefix(f.Name, prefix); in {
			first, _, _ := strings.Cut(rest, "/")
			names[first] = true
		}
	}
	list := make([]string, 0, len(names))
	for n := range names {
		list = append(list, n)
	}
	slices.Sort(list)
	return list, nil
}

// packedFile is a file of a packed backup.
type packedFile struct {
	io.ReaderAt
	name string
	info vfs.Info
}

func (f *packedFile) refused(op string) error {
	return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrPermission}
}

func (f *packedFile) WriteAt([]byte, int64) (int, error) { return 0, f.refused("write") }
func (f *packedFile) Truncate(int64) error               { return f.refused("truncate") }
func (f *packedFile) Sync() error                        { return nil }
func (f *packedFile) Datasync() error                    { return nil }
func (f *packedFile) Stat() (vfs.Info, error)            { return f.info, nil }
func (f *packedFile) SetMtime(time.Time) error           { return f.refused("chtimes") }
func (f *packedFile) SetMode(fs.FileMode) error          { return f.refused("chmod") }
func (f *packedFile) Lease() (bool, error)               { return false, errors.ErrUnsupported }
func (f *packedFile) Unlease() error                     { return nil }
func (f *packedFile) Map() (vfs.Mapping, error)          { return nil, errors.ErrUnsupported }
func (f *packedFile) Name() string                       { return f.name }
func (f *packedFile) Close() error                       { return nil }

// packedList reads as the file files.sha256 of a packed backup. Its text is generated during the read, from the list of
// files that package pack keeps in the packed backup.
type packedList struct {
	packedFile
	p    *pack.Reader
	mu   sync.Mutex
	next func() (pack.File, error, bool)
	stop func()
	at   int64  // offset of text in files.sha256
	text []byte // the line of files.sha256 that was generated last
}

// ReadAt implements vfs.File. It is fast only for reading from the beginning to the end.
func (l *packedList) ReadAt(b []byte, off int64) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil || off < l.at {
		l.end()
		l.next, l.stop = iter.Pull2(l.p.All())
		l.at, l.text = 0, nil
	}
	for n < len(b) {
		if from := off + int64(n) - l.at; from < int64(len(l.text)) {
			n += copy(b[n:], l.text[from:])
			continue
		}
		l.at += int64(len(l.text))
		l.text = l.text[:0]
		f, err, ok := l.next()
		switch {
		case !ok:
			return n, io.EOF
		case err != nil:
			return n, err
		case isListed(f.Name):
			l.text = appendListed(l.text, f.Name, f.Mark, f.Sum)
		}
	}
	return n, nil
}

func (l *packedList) end() {
	if l.stop != nil {
		l.stop()
		l.next, l.stop = nil, nil
	}
}

// Stat implements vfs.File.
func (l *packedList) Stat() (vfs.Info, error) {
	size := int64(0)
	for f, err := range l.p.All() {
		if err != nil {
			return vfs.Info{}, err
		}
		if isListed(f.Name) {
			size += int64(hex.EncodedLen(len(f.Sum)) + len(" *") + len(f.Name) + len("\n"))
		}
	}
	return vfs.Info{Size: size, Mode: 0o600, Nlink: 1}, nil
}

// Close implements vfs.File.
func (l *packedList) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	return nil
}

// room returns an error if the file system has no room for the files of a packed backup, which may be much larger than
// the backup.
func (r *restore) room(from source) error {
	if from.p == nil {
		return nil
	}
	dir := filepath.Dir(r.s.Dir)
	v, err := r.s.FS.Volume(dir)
	if err != nil {
		return nil // the copying reports a disk that is full
	}
	if need := from.p.p.Bytes(); need > v.Free {
		return &errs.DiskFullError{Path: dir, Free: v.Free, Need: need}
	}
	return nil
}
