package docfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/vfs"
)

const (
	noteSuffix = ".note.json"
	partSuffix = ".part"
	unreadable = "unreadable" // prefix of the name of a file that is not hashed, in place of its hash
	// copies is the maximum number of files with the same bytes in quarantine. There can be several if other processes
	// had the files open.
	copies = 100
)

// Quarantine is the folder quarantine/ with the files that the store has moved out of the way. Only Drop changes or
// removes files in it.
type Quarantine struct {
	l     Layout
	clock func() time.Time

	// The names in the folder, by the hash with which they begin. They are remembered while no other process
	// adds to the folder, as during a round. nil: not listed yet.
	mu      sync.Mutex
	listing bool
	listed  map[string][]string
}

// list sets whether q remembers the names in its folder after it has listed them. In any case q forgets the names that
// it has remembered so far.
func (q *Quarantine) list(enable bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.listing, q.listed = enable, nil
}

// alone begins a period in which no other process adds files to the quarantine folder. During this period the folder is
// listed once instead of once for each file. The function end ends the period.
func (q *Quarantine) alone() (end func()) {
	q.list(true)
	return func() { q.list(false) }
}

// like returns the sorted names of the files in quarantine that begin with prefix, the first digits of the hash of
// their bytes.
func (q *Quarantine) like(prefix string) ([]string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.listed == nil {
		names, err := q.l.FS.ReadDir(q.l.path(quarantineFolder))
		if err != nil {
			return nil, failure("list", quarantineFolder, err)
		}
		slices.Sort(names)
		listed := map[string][]string{}
		for _, name := range names {
			if strings.HasSuffix(name, partSuffix) || isNote(name, names) {
				continue
			}
			hash, _, _ := strings.Cut(name, "-")
			listed[hash] = append(listed[hash], name)
		}
		if !q.listing {
			return listed[prefix], nil
		}
		q.listed = listed
	}
	return slices.Clone(q.listed[prefix]), nil
}

// isNote reports whether name is the name of a note in quarantine. The suffix alone is not enough, because a memory may
// have the id "x.note".
func isNote(name string, sorted []string) bool {
	of, is := strings.CutSuffix(name, noteSuffix)
	if is {
		_, is = slices.BinarySearch(sorted, of)
	}
	return is
}

// added adds the name of a new file in quarantine to the remembered names.
func (q *Quarantine) added(target string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.listed == nil {
		return
	}
	name := filepath.Base(target)
	hash, _, _ := strings.Cut(name, "-")
	names := q.listed[hash]
	if at, found := slices.BinarySearch(names, name); !found {
		q.listed[hash] = slices.Insert(names, at, name)
	}
}

// NewQuarantine returns the quarantine of a store. It does not access the disk; the folder is created when
// it is first needed.
func NewQuarantine(l Layout, clock func() time.Time) *Quarantine {
	return &Quarantine{l: l, clock: clock}
}

// File moves a file into quarantine and returns the file's new path in the store. When it returns, the changes in both
// folders are durable. If a file with the same bytes is already in quarantine, and no other process has the moved file
// open, File removes that file and returns the path of the one in quarantine.
func (q *Quarantine) File(name string, n Note) (where string, err error) {
	f, err := q.l.FS.OpenFile(name, os.O_RDONLY, 0)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return "", failure("open", q.l.rel(name), err)
	}
	granted := false
	if err == nil {
		defer func() { _ = f.Close() }()
		granted = leased(f)
	} else {
		f = nil
	}
	if n.From == "" {
		n.From = q.l.rel(name)
	}
	k, err := q.take(f, name, n, granted)
	if err != nil {
		return "", err
	}
	if err := q.l.FS.SyncDir(filepath.Dir(name)); err != nil {
		return k.where, syncFailure(q.l.rel(filepath.Dir(name)), err)
	}
	return k.where, nil
}

// Bytes writes bytes to a new file in quarantine, such as the tail that was cut off the log. name becomes part of the
// file's name, only for human readers. The same bytes are kept only once.
func (q *Quarantine) Bytes(name string, data []byte, n Note) (where string, err error) {
	if err := q.l.makeFolder(quarantineFolder); err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	n.Size, n.Hash = int64(len(data)), contentHash(data)
	for i := 1; i <= copies; i++ {
		target := q.target(sum[:], name, i)
		switch _, err := q.l.FS.Stat(target); {
		case err == nil && q.sameBytes(target, int64(len(data)), sum[:]):
			return q.l.rel(target), q.note(target, n)
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return "", failure("examine", q.l.rel(target), err)
		}
		if err := q.note(target, n); err != nil {
			return "", err
		}
		if err := vfs.WriteDurable(q.l.FS, target+partSuffix, target, data, q.l.fileMode()); err != nil {
			return "", failure("write", q.l.rel(target), err)
		}
		return q.l.rel(target), nil
	}
	return "", q.tooMany(name)
}

type keptState int

const (
	keptNot    keptState = iota // hard links are not supported: the caller renames the file to where
	keptLinked                  // the file has a second name in quarantine
	keptEqual                   // a file with the same bytes is already in quarantine
)

type kept struct {
	where  string // path relative to the store
	target string // path in the file system
	info   vfs.Info
	state  keptState
}

// take moves the file at the path name to quarantine. f is the open file, or nil if this process may not open it. If
// granted is true, no other process has the file open, so take may remove the file if the same bytes are already in
// quarantine. Otherwise another process may still save into the file, and take always moves it.
func (q *Quarantine) take(f vfs.File, name string, n Note, granted bool) (kept, error) {
	k, err := q.keep(f, name, n, granted)
	if err != nil {
		return k, err
	}
	if k.state != keptNot {
		// Move only the file that was examined: another program may have saved by rename meanwhile.
		if st, err := q.l.FS.Stat(name); err != nil || f != nil && !sameFile(f, st) {
			return k, ignoreMissing(err)
		}
		return k, ignoreMissing(q.l.FS.Remove(name))
	}
	if err := q.l.FS.RenameNew(name, k.target); err != nil {
		return k, failure("set aside", q.l.rel(name), err)
	}
	q.added(k.target)
	return k, q.sync()
}

// keep gives the file at the path name a second name in quarantine, durably, after it has written a note. A file that
// has names in two folders survives even if a power loss keeps only half of a later rename. If equalWillDo is true and
// a file with the same bytes is already in quarantine, keep uses that file instead. If the system does not permit a
// second name, the result has the state keptNot, and the caller renames the file.
func (q *Quarantine) keep(f vfs.File, name string, n Note, equalWillDo bool) (kept, error) {
	if err := q.l.makeFolder(quarantineFolder); err != nil {
		return kept{}, err
	}
	info, err := q.l.FS.Stat(name)
	if err != nil {
		return kept{}, failure("examine", q.l.rel(name), err)
	}
	sum, err := q.settle(f, n.From, &info)
	if err != nil {
		return kept{}, failure("sync", q.l.rel(name), err)
	}
	n.Size, n.Mtime, n.NotHashed = info.Size, info.Mtime.UTC(),
		Unhashed(n.From, info.Size, f != nil && vfs.Sparse(f, info.Size))
	if sum != nil {
		n.Hash = "sha256:" + hex.EncodeToString(sum)
	}
	k := kept{info: info}
	if k, err = q.find(k, sum, equalWillDo); err != nil {
		return k, err
	}
	if k.state != keptNot { // perhaps from an interrupted attempt
		return k, errors.Join(q.note(k.target, n), q.sync())
	}
	for i := 1; i <= copies; i++ {
		k.target = q.target(sum, n.From, i)
		k.where = q.l.rel(k.target)
		switch _, err := q.l.FS.Stat(k.target); {
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return k, failure("examine", k.where, err)
		}
		if err := q.note(k.target, n); err != nil {
			return k, err
		}
		switch err := q.l.FS.Link(name, k.target); {
		case errors.Is(err, fs.ErrExist):
			continue
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
			return k, nil // the latter: Linux refuses links to files that one may not write
		case err != nil:
			return k, failure("link", q.l.rel(name), err)
		}
		// The file with two names is the one that was in the place at that moment; it may have been saved
		// again since it was opened.
		if k.info, err = q.l.FS.Stat(k.target); err != nil {
			return k, failure("examine", k.where, err)
		}
		k.state = keptLinked
		q.added(k.target)
		return k, q.sync()
	}
	return kept{}, q.tooMany(n.From)
}

// find searches quarantine for the file that k describes, under any name. sum is the hash of the file's bytes; if it
// is nil, find finds nothing. If equalWillDo is true, find accepts another file with the same bytes, because a file
// may be moved to quarantine once from its path and once from tmp/.
func (q *Quarantine) find(k kept, sum []byte, equalWillDo bool) (kept, error) {
	if sum == nil {
		return k, nil
	}
	names, err := q.like(hex.EncodeToString(sum)[:16])
	if err != nil {
		return k, err
	}
	for _, name := range names {
		target := q.l.path(quarantineFolder, name)
		st, err := q.l.FS.Stat(target)
		if err != nil {
			continue
		}
		state := keptNot
		if inodeOf(st) == inodeOf(k.info) {
			state = keptLinked
		} else if equalWillDo && q.sameBytes(target, k.info.Size, sum) {
			state = keptEqual
		}
		if state != keptNot {
			k.target, k.where, k.state = target, q.l.rel(target), state
			return k, nil
		}
	}
	return k, nil
}

// settle makes the bytes of a file durable and returns their hash. The hash is nil if the bytes cannot be read, exceed
// the limit of this kind of file, or are mostly holes.
func (q *Quarantine) settle(f vfs.File, from string, info *vfs.Info) (sum []byte, err error) {
	if f == nil {
		return nil, nil
	}
	if st, err := f.Stat(); err == nil {
		*info = st
	}
	// The program that saved the file may not have synced it. On some systems a file that is open for
	// reading only cannot be synced.
	if err := f.Sync(); err != nil && !vfs.IsPermission(err) {
		return nil, err
	}
	if info.Size > hashMostOf(from) {
		return nil, nil
	}
	if vfs.Sparse(f, info.Size) {
		return nil, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, info.Size)); err != nil {
		return nil, nil // unreadable: kept under a name without a hash
	}
	return h.Sum(nil), nil
}

func sameFile(f vfs.File, info vfs.Info) bool {
	st, err := f.Stat()
	return err == nil && inodeOf(st) == inodeOf(info)
}

// sameBytes reports whether a file in quarantine has the given size and hash. It returns false for a file above the
// size limit: such a file was never hashed, even if its name contains a hash.
func (q *Quarantine) sameBytes(name string, size int64, sum []byte) bool {
	f, err := q.l.FS.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil || !st.Mode.IsRegular() || st.Size != size || size > HashMost {
		return false
	}
	h := sha256.New()
	_, err = io.Copy(h, io.NewSectionReader(f, 0, st.Size))
	return err == nil && string(h.Sum(nil)) == string(sum)
}

// doomedSuffix is the ending of the name of a file in quarantine that a purge is going to overwrite; see
// package trace.
const doomedSuffix = ".purged"

// isUnfinished reports whether a name in quarantine/ belongs to an interrupted write or to a file that a purge is going
// to overwrite. Files that are moved to quarantine never get such a name: otherwise they would not be listed, and a
// purge would remove them.
func isUnfinished(name string) bool {
	return strings.HasSuffix(name, partSuffix) || strings.HasSuffix(name, doomedSuffix)
}

// target returns the i-th candidate for the path in quarantine of a file that comes from the path from and whose bytes
// have the given hash.
func (q *Quarantine) target(sum []byte, from string, i int) string {
	prefix := unreadable
	if sum != nil {
		prefix = hex.EncodeToString(sum)[:16]
	}
	name := path.Base(filepath.ToSlash(from))
	if checkName(name) != nil {
		name = "unnamed"
	}
	name = human.Tail(name, 150) // some file systems refuse a name that is not UTF-8
	if isUnfinished(name) {
		name += "_"
	}
	if i > 1 {
		name += "." + strconv.Itoa(i)
	}
	return q.l.path(quarantineFolder, prefix+"-"+name)
}

// note writes the note for the file at target in quarantine. If the note exists already, it is kept, because the first
// note was written when most was known about the file.
func (q *Quarantine) note(target string, n Note) error {
	name := target + noteSuffix
	if _, err := q.l.FS.Stat(name); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return failure("examine", q.l.rel(name), err)
	}
	n.When = q.clock().UTC()
	data, err := n.encode()
	if err != nil {
		return failure("encode", q.l.rel(name), err)
	}
	if err := vfs.WriteDurable(q.l.FS, name+partSuffix, name, data, q.l.fileMode()); err != nil {
		return failure("write", q.l.rel(name), err)
	}
	return nil
}

func (q *Quarantine) sync() error {
	if err := q.l.FS.SyncDir(q.l.path(quarantineFolder)); err != nil {
		return syncFailure(quarantineFolder, err)
	}
	return nil
}

func (q *Quarantine) tooMany(name string) error {
	return fmt.Errorf("quarantine/ already has %d files that are named after %s: inspect these files and remove "+
		"those that are not needed", copies, name)
}
