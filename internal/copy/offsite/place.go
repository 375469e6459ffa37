package offsite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote/sender"
)

// Place records on a machine where the copy of a store is. The record is in the folder of the user's state, outside of
// every store, and is valid only for one folder of the store. So a store that was cloned or copied to another folder
// does not send to the copy.
type Place struct {
	Format int       `json:"format"`
	URL    string    `json:"url"` // URL of the place, without credentials
	Store  uuid.UUID `json:"store"`
	Folder string    `json:"folder"`
	Log    uint64    `json:"log"`   // inode of the folder wal/ of the store
	Clone  bool      `json:"clone"` // the store is a clone of the copy, and sends nothing until it takes the copy
	// Ending is set while the copy is forgotten: nothing is sent, and the files about the copy are removed when the
	// process that sends has ended.
	Ending bool      `json:"ending,omitempty"`
	Erase  uint64    `json:"erase,omitempty"`  // highest epoch of the store's log whose purges do not wait for others
	Sealed bool      `json:"sealed,omitempty"` // the copy is sealed: nothing is sent without its Keys
	Added  time.Time `json:"added"`
}

const placeFormat = 1

// Places reads and writes the files about the copy of one store. They are in the folder of the user's state.
type Places struct {
	FS    vfs.FS
	State string // folder of the user's state; "": the user has no such folder
	Dir   string // folder of the store
	Store uuid.UUID
}

// Sends reports whether the log is sent to the place.
func (pl *Place) Sends() bool { return !pl.Clone && !pl.Ending }

// real returns the folder of the store without links. The names of the files about the copy depend on this path, so
// they are the same no matter through which links the store is opened.
func (p *Places) real() string {
	return vfs.WithoutLinks(p.Dir)
}

// folder is the folder in the user's state that has one group of files for each store.
const folder = "copies"

// path returns the path of the file of the given kind about the copy; files lists the kinds.
func (p *Places) path(kind string) string {
	sum := sha256.Sum256([]byte(p.real()))
	return filepath.Join(p.State, folder, p.Store.String()+"-"+hex.EncodeToString(sum[:8])+"."+kind+".json")
}

// ofStore reports whether a name is that of the file "place" of the store, regardless of the store's folder.
func (p *Places) ofStore(name string) bool {
	return strings.HasPrefix(name, p.Store.String()+"-") && strings.HasSuffix(name, ".place.json")
}

// Keeper returns the keeper of the file in which the sender of this machine records which copy it sends to; see
// sender.Binding.
func (p *Places) Keeper() sender.Keeper { return &sender.File{FS: p.FS, Path: p.path("binding")} }

// followed reports whether the store has the file wal/sent, which records how much of the log is already in a copy
// (package wal/past).
func (p *Places) followed() bool {
	_, err := p.FS.Stat(filepath.Join(p.Dir, "wal", "sent"))
	return err == nil
}

// Load returns the place. The error matches errs.ErrNotFound if no place is recorded, and errs.ErrInvalid if the place
// is that of another folder. The error is a *MovedStoreError if the store was moved since the place was recorded.
func (p *Places) Load(context.Context) (pl Place, err error) {
	if p.State == "" {
		return pl, errs.ErrNotFound
	}
	name := p.path("place")
	b, err := vfs.ReadFile(p.FS, name, 64<<10)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return pl, p.moved(name)
	case errors.Is(err, fs.ErrPermission) && !p.followed(): // no copy was ever made
		return pl, fmt.Errorf("%s: %w", name, errs.ErrNotFound)
	}
	if err != nil {
		return pl, fmt.Errorf("reading %s: %w", name, err)
	}
	if err := json.Unmarshal(b, &pl); err != nil {
		return Place{}, &errs.CorruptionError{Path: name, Offset: -1, Err: err}
	}
	if pl.Sealed {
		_, err := p.Keys()
		if errors.Is(err, errs.ErrNotFound) {
			err = &errs.CorruptionError{Path: p.path("keys"), Offset: -1, Err: fmt.Errorf("the keys of the sealed "+
				"copy at %s are missing -> memctl remote remove, then memctl remote add for an empty place", pl.URL)}
		}
		if err != nil {
			return Place{}, err
		}
	}
	if pl.Format > placeFormat {
		return Place{}, &errs.NewerError{Path: name, Format: uint64(pl.Format), Reads: placeFormat}
	}
	if pl.Store != p.Store || pl.Folder != p.real() {
		return Place{}, &errs.CorruptionError{Path: name, Offset: -1, Err: errors.New("the file records the copy of " +
			"another store or of another folder")}
	}
	ino, err := p.inode()
	if err != nil {
		return Place{}, err
	}
	if pl.Log != ino {
		return Place{}, fmt.Errorf("%s: %w: the folder is not the one whose log was sent to %s (it was copied or "+
			"restored) -> memctl remote remove, then memctl remote add for an empty place",
			p.Dir, errs.ErrInvalid, pl.URL)
	}
	return pl, nil
}

func (p *Places) inode() (uint64, error) {
	st, err := p.FS.Stat(filepath.Join(p.Dir, "wal"))
	if err != nil {
		return 0, fmt.Errorf("examining the log: %w", err)
	}
	return st.Ino, nil
}

// Save durably records pl as the place to which this folder sends its log.
func (p *Places) Save(pl Place) (err error) {
	if p.State == "" {
		return fmt.Errorf("%w: this user has no folder for the state of programs -> set HOME or XDG_STATE_HOME",
			errs.ErrInvalid)
	}
	pl.Format, pl.Store, pl.Folder = placeFormat, p.Store, p.real()
	if pl.Log, err = p.inode(); err != nil {
		return err
	}
	switch _, err := p.Keys(); {
	case err == nil:
		pl.Sealed = true
	case !errors.Is(err, errs.ErrNotFound) || pl.Sealed:
		return err
	}
	if err := p.write("place", pl); err != nil {
		return err
	}
	return p.removeMoved(pl)
}

// MovedStoreError reports that a place is recorded for the folder from which the store was moved. Nothing is sent from
// the folder in which the store is now. A MovedStoreError matches errs.ErrInvalid.
type MovedStoreError struct {
	Folder string // folder of the store now
	Place  Place  // the place that was recorded for the folder before
}

// Error returns the message, in one line.
func (e *MovedStoreError) Error() string {
	return fmt.Sprintf("%s was moved from %s: nothing is sent to its copy at %s any more -> memctl remote take %s",
		e.Folder, e.Place.Folder, e.Place.URL, e.Place.URL)
}

// Unwrap makes the error match errs.ErrInvalid.
func (e *MovedStoreError) Unwrap() error { return errs.ErrInvalid }

// moved returns a *MovedStoreError if a place is recorded for another folder and this store was moved from there;
// otherwise an error that matches errs.ErrNotFound. A store that was copied is not treated as moved: its wal/ has
// another inode, and the store still exists in the folder from which it was copied.
func (p *Places) moved(name string) error {
	none := fmt.Errorf("%s: %w", name, errs.ErrNotFound)
	if !p.followed() {
		return none
	}
	for pl := range p.movedFrom() {
		return &MovedStoreError{Folder: p.Dir, Place: pl}
	}
	return none
}

// movedFrom yields the places that are recorded for folders from which the store was moved, each with the path of its
// file.
func (p *Places) movedFrom() iter.Seq2[Place, string] {
	return func(yield func(Place, string) bool) {
		here, err := p.inode()
		if err != nil {
			return
		}
		for pl, path := range p.otherPlaces() {
			_, err := p.FS.Stat(filepath.Join(pl.Folder, "wal"))
			if pl.Sends() && (pl.Log == here || errors.Is(err, fs.ErrNotExist)) && !yield(pl, path) {
				return
			}
		}
	}
}

// Bindings returns the records (sender.Binding) about the copies that this user has added for the store: for the
// folder of the store, and for folders from which the store was moved.
func (p *Places) Bindings(ctx context.Context) (list []sender.Binding, err error) {
	if p.State == "" {
		return nil, nil
	}
	paths := []string{p.path("binding")}
	for _, path := range p.movedFrom() {
		paths = append(paths, strings.TrimSuffix(path, "place.json")+"binding.json")
	}
	for _, path := range paths {
		b, err := (&sender.File{FS: p.FS, Path: path}).Load(ctx)
		switch {
		case err == nil:
			list = append(list, b)
		case !errors.Is(err, errs.ErrNotFound) && !errors.Is(err, syscall.ENOTDIR):
			return nil, err
		}
	}
	return list, nil
}

// otherPlaces yields the places that are recorded for the store in other folders, each with the path of its file.
// It omits files that cannot be read.
func (p *Places) otherPlaces() iter.Seq2[Place, string] {
	return func(yield func(Place, string) bool) {
		names, _ := p.FS.ReadDir(filepath.Join(p.State, folder))
		for _, name := range names {
			path := filepath.Join(p.State, folder, name)
			if !p.ofStore(name) || path == p.path("place") {
				continue
			}
			var pl Place
			b, err := vfs.ReadFile(p.FS, path, 64<<10)
			if err != nil || json.Unmarshal(b, &pl) != nil || pl.Format > placeFormat || pl.Store != p.Store {
				continue
			}
			if !yield(pl, path) {
				return
			}
		}
	}
}

// removeMoved removes the files about the copy that are recorded for the folder from which the store was moved.
func (p *Places) removeMoved(now Place) error {
	for pl, path := range p.otherPlaces() {
		if pl.Log != now.Log {
			continue
		}
		for _, what := range files {
			name := strings.TrimSuffix(path, "place.json") + what + ".json"
			if err := p.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("removing %s: %w", name, err)
			}
		}
	}
	return nil
}

// files are the kinds of files about a copy, in the order in which they are removed. The file of kind "place" is the
// last one: as long as this file exists, an interrupted removal can be repeated.
var files = []string{"status", "binding", "keys", "place"}

// Copied has the bytes that the files about the copy had when Copy was called.
type Copied struct {
	p     *Places
	bytes map[string][]byte // bytes of each file by its kind; nil: the file did not exist
}

// Copy reads the files about the copy, so that they can be put back.
func (p *Places) Copy() (*Copied, error) {
	c := &Copied{p: p, bytes: map[string][]byte{}}
	if p.State == "" {
		return c, nil
	}
	for _, what := range files {
		b, err := vfs.ReadFile(p.FS, p.path(what), 64<<10)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return nil, fmt.Errorf("reading %s: %w", p.path(what), err)
		}
		c.bytes[what] = b
	}
	return c, nil
}

// Restore writes the files back as they were when Copy was called.
func (c *Copied) Restore() (err error) {
	for _, what := range files {
		if b := c.bytes[what]; b != nil {
			err = errors.Join(err, c.p.writeBytes(what, b))
		} else if rerr := c.p.FS.Remove(c.p.path(what)); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

func (p *Places) write(kind string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return p.writeBytes(kind, append(b, '\n'))
}

func (p *Places) writeBytes(kind string, b []byte) error {
	name := p.path(kind)
	if err := vfs.MkdirAll(p.FS, filepath.Dir(name), 0o700); err != nil {
		return vfs.Failed("creating", filepath.Dir(name), err)
	}
	temp := fmt.Sprintf("%s.%d.new", name, p.FS.Host().PID)
	return vfs.Failed("writing", name, vfs.WriteDurable(p.FS, temp, name, b, 0o600))
}

// Remove removes the files about the copy. The copy itself stays.
func (p *Places) Remove() error {
	for _, what := range files {
		if err := p.FS.Remove(p.path(what)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing %s: %w", p.path(what), err)
		}
	}
	here, err := p.inode()
	if err != nil {
		return nil
	}
	return p.removeMoved(Place{Log: here})
}

// Status is what the process that sends the log to the copy records for other processes.
type Status struct {
	PID      int        `json:"pid"`
	Sending  bool       `json:"sending"` // the process sends; if it was killed, follow.lock is free
	Time     time.Time  `json:"time"`    // when it was recorded
	Place    string     `json:"place"`
	Epoch    uint64     `json:"epoch"`
	Sent     uint64     `json:"sent"`
	Success  *time.Time `json:"success"` // time of the last round that sent everything
	Failure  *time.Time `json:"failure"`
	Error    string     `json:"error,omitempty"` // error of the last round
	Stopped  bool       `json:"stopped,omitempty"`
	Reason   string     `json:"reason,omitempty"` // reason why the epoch was begun
	Gap      string     `json:"gap,omitempty"`
	Snapshot *time.Time `json:"snapshot"`
	Snapping string     `json:"snapshot_error,omitempty"`
}

// Status returns the recorded status; ok is false if no status is recorded.
func (p *Places) Status() (s Status, ok bool) {
	b, err := vfs.ReadFile(p.FS, p.path("status"), 64<<10)
	return s, err == nil && json.Unmarshal(b, &s) == nil
}
