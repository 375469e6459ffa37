package memorystores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
)

// trashName is the name of the folder with deleted stores. newName is the beginning of the names of folders in
// which stores are being created.
const (
	trashName = ".trash"
	newName   = ".new-"
)

// trashTime is the layout of the time in the name of a folder in the trash.
const trashTime = "20060102T150405.000000Z"

// scanEvery is the interval after which the folder is read again even if its modification time did not change.
const scanEvery = 5 * time.Second

// found is a folder that contains a memory store.
type found struct {
	name   string // name of the folder
	mtime  time.Time
	size   int64
	file   os.FileInfo // identifies config.json in the folder, for os.SameFile
	config settings.MemoryStoreConfig
	err    error // config.json cannot be read, or has no id: errUnnamed
}

// errUnnamed means that a store has no id yet. The store gets an id the next time that the stores are listed.
var errUnnamed = errors.New("the store has no id yet")

// DuplicateError means that stores in several folders have the same id, so all of them except one must be copies.
type DuplicateError struct {
	ID      string
	Folders []string // names of the folders, sorted
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("the folders %s have the same id %s, so one is a copy of the other: move one away, or remove "+
		"the member memory_store from its config.json, which makes it a store of its own",
		strings.Join(e.Folders, " and "), e.ID)
}

var errNoStore = fmt.Errorf("memory store: %w", varve.ErrNotFound)

// scan finds the stores in the folder, if they may have changed since the last scan or if force is set. The caller
// holds s.scanning.
func (s *Stores) scan(ctx context.Context, force bool) error {
	info, err := os.Stat(s.dir)
	if err != nil {
		return fmt.Errorf("reading the folder of the stores: %w", err)
	}
	now := time.Now()
	if !force && info.ModTime().Equal(s.dirTime) && now.Sub(s.scanned) < scanEvery {
		return nil
	}
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("reading the folder of the stores: %w", err)
	}
	next := map[string]*found{}
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if name := e.Name(); e.IsDir() && !strings.HasPrefix(name, ".") {
			s.mu.Lock()
			was := s.folders[name]
			s.mu.Unlock()
			if f := s.look(name, was); f != nil {
				next[name] = f
			}
		}
	}
	ids := map[string][]string{}
	for name, f := range next {
		if f.config.ID != "" {
			ids[f.config.ID] = append(ids[f.config.ID], name)
		}
	}
	for _, names := range ids {
		slices.Sort(names)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, names := range ids {
		if len(names) > 1 && len(s.ids[id]) <= 1 {
			s.o.Logger.Error("stores are not served", "err", &DuplicateError{ID: id, Folders: names})
		}
	}
	s.folders, s.ids, s.scanned = next, ids, now
	// A folder that was made in the same tick of the clock as the last one that was seen is seen by the next scan.
	if s.dirTime = info.ModTime(); now.Sub(s.dirTime) < 100*time.Millisecond {
		s.dirTime = time.Time{}
	}
	return nil
}

// look returns the description of the store in a folder, or nil if the folder has no store. last is the description
// from the last scan, or nil if there is no earlier description. look does not open the store.
func (s *Stores) look(name string, last *found) *found {
	dir := filepath.Join(s.dir, name)
	file := filepath.Join(dir, settings.Name)
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f := &found{name: name, file: info}
	if err == nil {
		err = s.ofOthers(dir)
	}
	if err == nil {
		f.mtime, f.size = info.ModTime(), info.Size()
		if last != nil && last.err == nil && last.isSameFile(f) {
			return last
		}
		var c *settings.Config
		if c, _, err = settings.Read(vfs.OS(), dir); errors.Is(err, settings.ErrForeign) {
			return nil
		}
		if c != nil && c.MemoryStore != nil {
			f.config = *c.MemoryStore
			return f // other members may be invalid
		}
		if c != nil && settings.Invalid(err, memberName) == nil {
			f.err = errUnnamed // likewise
			return f
		}
	}
	if last == nil || last.err == nil {
		s.o.Logger.Warn("a store is not served", "file", file, "err", err)
	}
	if last != nil && !errors.Is(err, errOthers) {
		f.config = last.config
	}
	f.err = fmt.Errorf("%s: %w", file, err)
	return f
}

// ofOthers returns an error for a store that belongs to another user, because that user may have put the store into the
// folder. Stores of the user who owns the folder are served. If the folder is shared by a group, the stores of all
// members of the group are served.
func (s *Stores) ofOthers(dir string) error {
	files := vfs.OS()
	above, err := files.Stat(s.dir + "/.")
	if err != nil || len(s.self) == 0 || vfs.InfoIsShared(&above) && above.Mode&0o002 == 0 {
		return nil // reading the store says what is wrong
	}
	if owner, is := append(slices.Clone(s.self), int(above.UID)).Stranger(files, dir); is {
		return fmt.Errorf("%w, user %d: if you trust the content of the store, change its owner to yourself, or "+
			"serve only this store", errOthers, owner)
	}
	return nil
}

var errOthers = fmt.Errorf("%w: the store belongs to another user", varve.ErrPermission)

// openIn opens the store in a folder. It returns an error if there is no store or if the store belongs to another user.
func (s *Stores) openIn(ctx context.Context, dir string) (*varve.Store, error) {
	if err := s.ofOthers(dir); err != nil {
		return nil, err
	}
	return s.o.Open(ctx, dir, true)
}

// memberName is the member of config.json that contains the description of a memory store.
const memberName = "memory_store"

func (f *found) isSameFile(o *found) bool {
	return f.mtime.Equal(o.mtime) && f.size == o.size && f.file != nil && os.SameFile(f.file, o.file)
}

// nameAll gives an id to each store that has none, one store after the other. Only requests that list the stores wait
// until nameAll returns.
func (s *Stores) nameAll(ctx context.Context) error {
	for _, folder := range s.unnamed() {
		select {
		case s.naming <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		err := s.name(ctx, folder)
		<-s.naming
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, varve.ErrNoStore) { // or it was removed
			s.o.Logger.Warn("a store is not served", "folder", folder, "err", err)
		}
	}
	return nil
}

// unnamed returns the folders of stores without an id.
func (s *Stores) unnamed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for name, f := range s.folders {
		if errors.Is(f.err, errUnnamed) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// name gives an id to the store in a folder, if it has none.
func (s *Stores) name(ctx context.Context, folder string) error {
	dir := filepath.Join(s.dir, folder)
	if c, _, _ := settings.Read(vfs.OS(), dir); c != nil && c.MemoryStore != nil {
		return nil // another request was faster
	}
	st, err := s.openIn(ctx, dir)
	if err != nil {
		return err
	}
	_, err = identify(ctx, st, folder, s.o.Clock())
	return errors.Join(err, st.CloseWithin(closeWithin))
}

// identify returns the description of a store. If the store has no description, identify creates one. If the
// description is invalid, identify returns an error: with a new description the store would have another id, and
// clients would no longer find it.
func identify(ctx context.Context, st *varve.Store, name string, now time.Time) (settings.MemoryStoreConfig, error) {
	if c := st.Admin().Config().MemoryStore; c != nil {
		return settings.MemoryStoreConfig(*c), nil
	}
	var is varve.MemoryStoreConfig
	err := st.Admin().UpdateConfig(ctx, func(c *varve.Config) error {
		if c.MemoryStore == nil {
			dir := st.Admin().Stats().Dir
			_, _, err := settings.Read(vfs.OS(), dir)
			if err = settings.Invalid(err, memberName); err != nil {
				return fmt.Errorf("%s: %w", filepath.Join(dir, settings.Name), err)
			}
			at := now.UTC().Truncate(time.Microsecond)
			c.MemoryStore = &varve.MemoryStoreConfig{ID: newStoreID(), Name: fitted(name), CreatedAt: at, UpdatedAt: at}
		}
		is = *c.MemoryStore
		return nil
	})
	return settings.MemoryStoreConfig(is), err
}

// fitted returns a name that is valid for a memory store, made from the name of the store's folder.
func fitted(folder string) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(folder, "_"))
	if r := []rune(name); len(r) > settings.MostStoreName {
		name = string(r[:settings.MostStoreName])
	}
	return cmp.Or(name, "store")
}

// find returns the folder that contains the store with this id. If no folder contains it, the error is errNoStore; if
// several folders contain it, the error is a *DuplicateError.
func (s *Stores) find(ctx context.Context, id string) (*found, error) {
	s.scanning.Lock()
	defer s.scanning.Unlock()
	for _, force := range []bool{false, true} {
		if err := s.scan(ctx, force); err != nil {
			return nil, err
		}
		s.mu.Lock()
		names := s.ids[id]
		var f *found
		if len(names) > 0 {
			f = s.folders[names[0]]
		}
		s.mu.Unlock()
		switch {
		case len(names) > 1:
			return nil, &DuplicateError{ID: id, Folders: names}
		case f == nil:
			return nil, errNoStore // the folder has not changed, or was read just now
		case f.err != nil && !force:
			continue // it may be right by now
		case f.err != nil:
			return nil, fmt.Errorf("the store cannot be read: %w", f.err)
		case force:
			return f, nil // read just now, though config.json may have changed since
		}
		if info, err := os.Lstat(filepath.Join(s.dir, f.name, settings.Name)); err == nil &&
			f.isSameFile(&found{mtime: info.ModTime(), size: info.Size(), file: info}) {
			return f, nil
		}
	}
	return nil, errNoStore
}

// rescan reads the folder again to find the existing stores.
func (s *Stores) rescan(ctx context.Context) error {
	s.scanning.Lock()
	defer s.scanning.Unlock()
	return s.scan(ctx, true)
}

// all returns the descriptions of the stores that can be served, the newest first.
func (s *Stores) all(ctx context.Context) ([]settings.MemoryStoreConfig, error) {
	if err := s.rescan(ctx); err != nil {
		return nil, err
	}
	if len(s.unnamed()) > 0 {
		if err := s.nameAll(ctx); err != nil {
			return nil, err
		}
		if err := s.rescan(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	var list []settings.MemoryStoreConfig
	for _, names := range s.ids {
		if f := s.folders[names[0]]; len(names) == 1 && f.err == nil {
			list = append(list, f.config)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b settings.MemoryStoreConfig) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// create creates a store with the description c.
func (s *Stores) create(ctx context.Context, c settings.MemoryStoreConfig) error {
	files, temp := s.files(), filepath.Join(s.dir, newName+c.ID)
	err := files.Mkdir(temp, 0o700)
	if err != nil {
		return fmt.Errorf("creating a store: %w", err)
	}
	err = vfs.WriteMark(files, temp, vfs.Mark{Kind: newKind}, 0o600)
	if err == nil {
		err = s.createIn(ctx, filepath.Join(temp, c.ID), &c)
	}
	if err == nil {
		err = files.Rename(filepath.Join(temp, c.ID), filepath.Join(s.dir, c.ID))
	}
	if err == nil {
		err = files.SyncDir(s.dir)
	}
	_ = vfs.RemoveKnown(files, temp, ofCreation(c.ID)) // emptyTrash removes it, too
	if err != nil {
		return fmt.Errorf("creating a store: %w", err)
	}
	return nil
}

func (s *Stores) createIn(ctx context.Context, dir string, c *settings.MemoryStoreConfig) error {
	st, err := s.o.Open(ctx, dir, false)
	if err != nil {
		return err
	}
	err = st.Admin().UpdateConfig(ctx, func(all *varve.Config) error {
		all.MemoryStore = (*varve.MemoryStoreConfig)(c)
		return nil
	})
	return errors.Join(err, st.CloseWithin(closeWithin))
}

// files returns the file system for the folder of the stores. It follows no links in that folder.
func (s *Stores) files() vfs.FS { return vfs.Below(vfs.OS(), s.dir) }

// remove moves the store with this id into the trash when no request uses the store any more. Requests that arrive in
// the meantime do not find the store.
func (s *Stores) remove(ctx context.Context, id string) error {
	if _, err := s.find(ctx, id); err != nil {
		return err
	}
	s.mu.Lock()
	if s.leaving[id] {
		s.mu.Unlock()
		return errNoStore
	}
	s.leaving[id] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.leaving, id)
		s.mu.Unlock()
	}()
	if err := s.drop(ctx, id); err != nil {
		return err
	}
	f, err := s.find(ctx, id) // the folder may have been renamed or copied meanwhile
	if err != nil {
		return err
	}
	files, trash := s.files(), filepath.Join(s.dir, trashName)
	if err := vfs.MkdirAll(files, trash, 0o700); err != nil {
		return fmt.Errorf("deleting a store: %w", err)
	}
	to := filepath.Join(trash, f.name+"."+s.o.Clock().UTC().Format(trashTime))
	if err := files.Rename(filepath.Join(s.dir, f.name), to); errors.Is(err, fs.ErrNotExist) {
		return errNoStore // another process was faster
	} else if err != nil {
		return fmt.Errorf("deleting a store: %w", err)
	}
	for _, dir := range []string{trash, s.dir} {
		if err := files.SyncDir(dir); err != nil {
			return fmt.Errorf("deleting a store: %w", err)
		}
	}
	return nil
}
