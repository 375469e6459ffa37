package offsite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote/sender"
)

// Place is what a machine remembers about the copy of a store: where it is. It is kept in the folder of the user's
// state, outside of every store, and bound to the folder of the store, so that neither a cloned nor a copied store
// connects to anything.
type Place struct {
	Format int       `json:"format"`
	URL    string    `json:"url"` // without credentials
	Store  uuid.UUID `json:"store"`
	Folder string    `json:"folder"`
	Log    uint64    `json:"log"`   // inode of the folder wal/ of the store
	Clone  bool      `json:"clone"` // the store is a clone of the copy, and sends nothing until it takes the copy
	Added  time.Time `json:"added"`
}

const placeFormat = 1

// Places are the places of a store's copy in the folder of the user's state.
type Places struct {
	FS     vfs.FS
	State  string // folder of the user's state, "" if there is none
	Folder string // absolute path of the store
	Store  uuid.UUID
}

// folder is the folder in the user's state that has one group of files for each store.
const folder = "copies"

// path returns the path of a file about the copy.
func (p *Places) path(what string) string {
	sum := sha256.Sum256([]byte(p.Folder))
	return filepath.Join(p.State, folder, p.Store.String()+"-"+hex.EncodeToString(sum[:8])+"."+what+".json")
}

// Keeper returns the keeper of the sender's binding.
func (p *Places) Keeper() sender.Keeper { return &sender.File{FS: p.FS, Path: p.path("binding")} }

// Load returns the place. The error matches errs.ErrNotFound if there is none, and errs.ErrInvalid if it is that of
// another folder.
func (p *Places) Load(context.Context) (pl Place, err error) {
	if p.State == "" {
		return pl, errs.ErrNotFound
	}
	name := p.path("place")
	b, err := vfs.ReadFile(p.FS, name, 64<<10)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return pl, fmt.Errorf("%s: %w", name, errs.ErrNotFound)
	}
	if err != nil {
		return pl, fmt.Errorf("reading %s: %w", name, err)
	}
	if err := json.Unmarshal(b, &pl); err != nil {
		return Place{}, &errs.CorruptionError{Path: name, Offset: -1, Err: err}
	}
	if pl.Format > placeFormat {
		return Place{}, &errs.NewerError{Path: name, Format: uint64(pl.Format), Reads: placeFormat}
	}
	if pl.Store != p.Store || pl.Folder != p.Folder {
		return Place{}, &errs.CorruptionError{Path: name, Offset: -1, Err: errors.New("names another store")}
	}
	ino, err := p.inode()
	if err != nil {
		return Place{}, err
	}
	if pl.Log != ino {
		return Place{}, fmt.Errorf("%s: %w: the folder is not the one whose log was sent to %s (it was copied or "+
			"restored) -> memctl remote remove, then add an empty place", p.Folder, errs.ErrInvalid, pl.URL)
	}
	return pl, nil
}

func (p *Places) inode() (uint64, error) {
	st, err := p.FS.Stat(filepath.Join(p.Folder, "wal"))
	if err != nil {
		return 0, fmt.Errorf("looking at the log: %w", err)
	}
	return st.Ino, nil
}

// Save records the place.
func (p *Places) Save(pl Place) (err error) {
	if p.State == "" {
		return fmt.Errorf("%w: this user has no folder for the state of programs -> set HOME or XDG_STATE_HOME",
			errs.ErrInvalid)
	}
	pl.Format, pl.Store, pl.Folder = placeFormat, p.Store, p.Folder
	if pl.Log, err = p.inode(); err != nil {
		return err
	}
	return p.write("place", pl)
}

func (p *Places) write(what string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	name := p.path(what)
	if err := vfs.MkdirAll(p.FS, filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("creating %s: %w", filepath.Dir(name), err)
	}
	if err := vfs.WriteDurable(p.FS, fmt.Sprintf("%s.%d.new", name, p.FS.Host().PID), name, append(b, '\n'),
		0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// Remove forgets the place. What is there stays.
func (p *Places) Remove() error {
	for _, what := range []string{"place", "binding", "status"} {
		if err := p.FS.Remove(p.path(what)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing %s: %w", p.path(what), err)
		}
	}
	return nil
}

// Status is what the process that sends has recorded for the others.
type Status struct {
	PID      int        `json:"pid"`
	Time     time.Time  `json:"time"` // when it was recorded
	Place    string     `json:"place"`
	Epoch    uint64     `json:"epoch"`
	Sent     uint64     `json:"sent"`
	Success  *time.Time `json:"success"` // last round that sent everything
	Failure  *time.Time `json:"failure"`
	Error    string     `json:"error,omitempty"` // of the last round
	Stopped  bool       `json:"stopped,omitempty"`
	Reason   string     `json:"reason,omitempty"` // why the epoch was begun
	Gap      string     `json:"gap,omitempty"`
	Snapshot *time.Time `json:"snapshot"`
	Snapping string     `json:"snapshot_error,omitempty"`
}

// Status returns the recorded status; ok is false if there is none.
func (p *Places) Status() (s Status, ok bool) {
	b, err := vfs.ReadFile(p.FS, p.path("status"), 64<<10)
	return s, err == nil && json.Unmarshal(b, &s) == nil
}
