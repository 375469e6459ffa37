package dir

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
)

const (
	identityName = "varve-remote.json"
	format       = 1
)

// Options are the parts of the machine that a Remote uses. The zero value selects the machine's own.
type Options struct {
	FS     vfs.FS
	Clock  func() time.Time
	Sleep  func(ctx context.Context, d time.Duration) error
	Random io.Reader
	// FileMode and FolderMode are the modes of new files and folders; 0 means 0600 and 0700.
	FileMode, FolderMode fs.FileMode
}

func (o *Options) fill(dir string) {
	o.FS = vfs.Below(o.FS, dir)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = vfs.Sleep
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.FileMode == 0 {
		o.FileMode = 0o600
	}
	if o.FolderMode == 0 {
		o.FolderMode = 0o700
	}
}

// Remote is a remote.Remote that keeps the copy of a store in a folder.
type Remote struct {
	dir  string
	o    Options
	id   uuid.UUID
	self vfs.Users

	mu     sync.Mutex
	newest uint64          // a number that was the newest entry once, where the search for the newest begins
	synced map[string]bool // folders of log/ whose own names this Remote has made durable
}

var _ remote.Remote = (*Remote)(nil)

type identity struct {
	Format uint64    `json:"format"`
	ID     uuid.UUID `json:"id"`
}

// Open opens the remote in a folder. If the folder is missing, empty or has no remote, the error matches
// remote.ErrNoRemote: nothing is created, because a disk that is not mounted looks like an empty folder.
func Open(_ context.Context, dir string, o *Options) (*Remote, error) {
	r := newRemote(dir, o)
	id, err := r.identity()
	if err != nil {
		return nil, err
	}
	r.id = id
	return r, nil
}

// identity reads the ID of the remote that is in the folder now.
func (r *Remote) identity() (id uuid.UUID, err error) {
	name := r.path(identityName)
	b, err := vfs.ReadFile(r.o.FS, name, 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return id, fmt.Errorf("%s: %w -> is the disk mounted?", r.dir, remote.ErrNoRemote)
	}
	if err != nil {
		return id, vfs.Failed("reading", name, err)
	}
	var i identity
	if err := json.Unmarshal(b, &i); err != nil {
		return id, &errs.CorruptionError{Path: name, Offset: -1, Err: err}
	}
	if i.Format > format {
		return id, &errs.NewerError{Path: name, Format: i.Format, Reads: format}
	}
	if i.Format == 0 || i.ID == uuid.Nil {
		return id, &errs.CorruptionError{Path: name, Offset: -1, Err: errContent}
	}
	return i.ID, nil
}

// checkIdentity returns nil if the folder is still the remote that was opened. A disk may be replaced or unmounted
// at any time. If the folder is not that remote any more, the error matches remote.ErrNoRemote.
func (r *Remote) checkIdentity() error {
	id, err := r.identity()
	if err == nil && id != r.id {
		err = fmt.Errorf("%s: %w: another copy is there now, %s, not %s -> is the right disk mounted?", r.dir,
			remote.ErrNoRemote, id, r.id)
	}
	return err
}

// Create makes a folder a remote. It first tests the file system: if two writers can both create the same entry there,
// or syncs fail, the error matches remote.ErrUnsuitable. Create creates a missing folder. It refuses a folder with
// other content, or one that another user has created. If the folder is a remote already, Create repeats the test and
// opens the remote.
func Create(ctx context.Context, dir string, o *Options) (*Remote, error) {
	r := newRemote(dir, o)
	_, err := r.o.FS.Stat(r.path(identityName))
	if errors.Is(err, fs.ErrNotExist) {
		// The mode of the folder does not matter: each file and folder in it is created with a mode of its own.
		if _, err := vfs.MakeRoot(r.o.FS, dir, r.o.FolderMode, r.self, true); err != nil {
			return nil, vfs.Failed("creating", dir, err)
		}
		err = r.free()
	}
	if err != nil {
		return nil, vfs.Failed("reading", dir, err)
	}
	for _, name := range []string{"tmp", "log", "floors", "snapshots", "machines"} {
		if err := vfs.MkdirAll(r.o.FS, r.path(name), r.o.FolderMode); err != nil {
			return nil, vfs.Failed("creating", r.path(name), err)
		}
	}
	if err := r.probe(ctx); err != nil {
		return nil, err
	}
	id, err := uuid.NewRandomFromReader(r.o.Random)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(identity{format, id})
	if err != nil {
		return nil, err
	}
	// The folders may be of a process that was killed before it synced them, or of one that is creating the remote now.
	if err := r.o.FS.SyncDir(dir); err != nil {
		return nil, vfs.Failed("syncing", dir, err)
	}
	if err := r.add(ctx, append(b, '\n'), r.path(identityName)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := r.o.FS.SyncDir(dir); err != nil {
		return nil, vfs.Failed("syncing", dir, err)
	}
	return Open(ctx, dir, o)
}

// free returns an error if the folder is not empty. It ignores the files that an interrupted Create has left.
func (r *Remote) free() error {
	names, err := vfs.Contents(r.o.FS, r.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch name {
		case "tmp", "log", "floors", "snapshots", "machines":
			inside, err := r.o.FS.ReadDir(r.path(name))
			if name == "tmp" {
				inside = slices.DeleteFunc(inside, isTemporary)
			}
			if err == nil && len(inside) == 0 {
				continue
			}
			fallthrough
		default:
			return fmt.Errorf("%w: the folder has other content (%s) -> name an empty or a new folder", errs.ErrInvalid,
				name)
		}
	}
	return nil
}

func newRemote(dir string, o *Options) *Remote {
	r := &Remote{dir: dir, synced: map[string]bool{}}
	if o != nil {
		r.o = *o
	}
	if r.o.FS == nil {
		r.o.FS = vfs.OS()
	}
	r.self = vfs.SelfOn(r.o.FS, os.Getenv)
	r.o.fill(dir)
	return r
}

// ID returns the ID of the remote, as the folder records it.
func (r *Remote) ID() uuid.UUID { return r.id }

// Place returns the folder as a URL.
func (r *Remote) Place() string {
	path := filepath.ToSlash(r.dir)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return "file://" + path
}

// Close does nothing: no file is open between two calls.
func (r *Remote) Close() error { return nil }

func (r *Remote) path(elem ...string) string {
	return filepath.Join(append([]string{r.dir}, elem...)...)
}

// isTemporary reports whether a file name in tmp/ has the form of the names that temporary returns.
func isTemporary(name string) bool { return temporaryName.MatchString(name) }

var temporaryName = regexp.MustCompile(`^[a-z2-7]{26}$`)

// temporary returns the path of a new temporary file in tmp/, with a random name. It does not create the file.
func (r *Remote) temporary() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(r.o.Random, b[:]); err != nil {
		return "", err
	}
	return r.path("tmp", strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))), nil
}

// add creates a file with all its content at once. If the name exists, the error matches fs.ErrExist. add does not sync
// the folder.
func (r *Remote) add(ctx context.Context, data []byte, name string) error {
	return r.addBy(ctx, func(f io.WriterAt) error {
		_, err := f.WriteAt(data, 0)
		return err
	}, name)
}

// addBy creates a file like add, with the content that the function write writes.
func (r *Remote) addBy(ctx context.Context, write func(f io.WriterAt) error, name string) error {
	temp, err := r.temporary()
	if err != nil {
		return err
	}
	f, err := vfs.CreateNew(r.o.FS, temp, r.o.FileMode)
	if err != nil {
		return vfs.Failed("creating", temp, err)
	}
	if err = write(vfs.Streamed(f)); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = ctx.Err() // from here on the outcome may be unknown, so a cancellation is too late
	}
	if err != nil {
		_ = r.o.FS.Remove(temp)
		return vfs.Failed("writing", temp, err)
	}
	if err = r.o.FS.RenameNew(temp, name); err != nil {
		_ = r.o.FS.Remove(temp) // after a lost answer this is the second name of the file, or is gone
	}
	return vfs.Failed("creating", name, err)
}
