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
	unreadable = "unreadable" // instead of a hash
	// copies bounds how many files of equal bytes lie beside each other because
	// somebody held them open.
	copies = 100
)

// Quarantine is the folder of what was set aside. Nothing in it is ever changed
// or removed by this package.
type Quarantine struct {
	l     Layout
	clock func() time.Time

	// While nobody else adds to it, as during a round: the files there, by the hash with which the
	// names begin. nil: not listed yet.
	mu      sync.Mutex
	listing bool
	listed  map[string][]string
}

// list begins to remember the files of the folder, and forgets what it knew.
func (q *Quarantine) list(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.listing, q.listed = on, nil
}

// alone begins a time in which nobody else adds to the folder: it is listed once
// instead of for each file.
func (q *Quarantine) alone() (end func()) {
	q.list(true)
	return func() { q.list(false) }
}

// like are the names of what was set aside with this hash, sorted.
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

// isNote: the suffix alone does not say it, for a memory may have the id "x.note".
func isNote(name string, sorted []string) bool {
	of, is := strings.CutSuffix(name, noteSuffix)
	if is {
		_, is = slices.BinarySearch(sorted, of)
	}
	return is
}

// added notes a name that was given in a round.
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

// NewQuarantine touches nothing; the folder is made when it is first needed.
func NewQuarantine(l Layout, clock func() time.Time) *Quarantine {
	return &Quarantine{l: l, clock: clock}
}

// File moves a file into quarantine and returns its new path in the store.
// Both folders are durable when it returns. A file of the same bytes that lies
// there already stands for this one.
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

// Bytes puts bytes into quarantine that are no file of their own, such as the
// cut tail of the log. name is for people; the same bytes are kept once.
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
			return "", failure("look at", q.l.rel(target), err)
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
	keptNot    keptState = iota // there are no links here: rename it to where
	keptLinked                  // has a second name in quarantine
	keptEqual                   // the same bytes lie there already
)

type kept struct {
	where  string // in the store
	target string // path
	info   vfs.Info
	state  keptState
}

// take moves name into quarantine. f is open on it, or nil if it may not be
// opened. granted: nobody else has it open, so that it can go if the same bytes
// lie there already; otherwise somebody may yet save into it.
func (q *Quarantine) take(f vfs.File, name string, n Note, granted bool) (kept, error) {
	k, err := q.keep(f, name, n, granted)
	if err != nil {
		return k, err
	}
	if k.state != keptNot {
		// Only what was looked at: somebody may have saved by rename meanwhile.
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

// keep gives name a second name in quarantine, durably, its note first. A file
// that stands in two folders survives whatever half of a later rename is lost.
func (q *Quarantine) keep(f vfs.File, name string, n Note, equalWillDo bool) (kept, error) {
	if err := q.l.makeFolder(quarantineFolder); err != nil {
		return kept{}, err
	}
	info, err := q.l.FS.Stat(name)
	if err != nil {
		return kept{}, failure("look at", q.l.rel(name), err)
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
	if k.state != keptNot { // perhaps by a try that was cut
		return k, errors.Join(q.note(k.target, n), q.sync())
	}
	for i := 1; i <= copies; i++ {
		k.target = q.target(sum, n.From, i)
		k.where = q.l.rel(k.target)
		switch _, err := q.l.FS.Stat(k.target); {
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return k, failure("look at", k.where, err)
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
		// What has two names is what stood there at that moment, perhaps saved again since it was
		// opened.
		if k.info, err = q.l.FS.Stat(k.target); err != nil {
			return k, failure("look at", k.where, err)
		}
		k.state = keptLinked
		q.added(k.target)
		return k, q.sync()
	}
	return kept{}, q.tooMany(n.From)
}

// find looks whether the file, or if that will do its bytes, lie in quarantine
// under whatever name: it may come by its own name one day and out of tmp/ the next.
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

// settle makes the bytes durable and hashes them: nil if they cannot be read, or are more
// than a file of this kind ever has, or holes.
func (q *Quarantine) settle(f vfs.File, from string, info *vfs.Info) (sum []byte, err error) {
	if f == nil {
		return nil, nil
	}
	if st, err := f.Stat(); err == nil {
		*info = st
	}
	// The one that saved it may not have. A file open for reading only cannot be synced everywhere.
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

// sameBytes compares a file of that size with a hash. Of one that is larger than any that
// was hashed, the name only claims to have it.
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

// doomedSuffix is the ending of what a purge is going to overwrite; see package trace.
const doomedSuffix = ".purged"

// isUnfinished reports whether a name in quarantine/ is that of an interrupted write or of a file that a purge is going
// to overwrite. Nothing that is set aside gets such a name: it would not be listed, and a purge would remove it.
func isUnfinished(name string) bool {
	return strings.HasSuffix(name, partSuffix) || strings.HasSuffix(name, doomedSuffix)
}

// target is the i-th path for bytes with this hash.
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

// note writes the note of target, once: the first knew most.
func (q *Quarantine) note(target string, n Note) error {
	name := target + noteSuffix
	if _, err := q.l.FS.Stat(name); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return failure("look at", q.l.rel(name), err)
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
	return fmt.Errorf("quarantine has %d files like %s that other programs had open: inspect them and remove what is "+
		"not needed", copies, name)
}
