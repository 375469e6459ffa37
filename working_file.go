package varve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/varve-db/varve/internal/copy"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// A scope's file rests on the one before it: the log has changes, not states. So
// it may not be lost while a newer one takes its place, as a memory's may. Each
// is written into an inode of its own and synced before it is put there, and
// what it displaces stays until that is durable: docfile.Flusher.Repeat.

// worked are the keys of the scopes that a flush has to write.
type worked struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (w *worked) add(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys == nil {
		w.keys = map[string]bool{}
	}
	w.keys[key] = true
}

// take empties the list and gives it, sorted.
func (w *worked) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := slices.Sorted(maps.Keys(w.keys))
	w.keys = nil
	return keys
}

// putScopes writes the files of the scopes that changed, durably.
func (f *filing) putScopes(ctx context.Context, keys []string) error {
	st := f.st
	if err := st.engine.Kinds.Scopes.Make(); err != nil {
		return err
	}
	for first := true; len(keys) > 0; first = false {
		src := &scopeFiles{st: st, ctx: ctx, keys: keys, distrusted: f.distrusted, wrote: map[string]believed{}}
		st.flusher.files.Repeat()
		placed, result, err := st.flusher.files.Put(ctx, src)
		st.edited(ctx, result.Edits)
		if err != nil {
			return fmt.Errorf("putting working memory into files: %w", err)
		}
		if err := placed.End(placed.Sync()); err != nil {
			return fmt.Errorf("putting working memory into files: %w", err)
		}
		src.believe()
		keys = nil
		for _, b := range result.Blocked {
			if !first {
				return b.Err
			}
			c := docfile.Change{Folder: st.engine.Kinds.Scopes.Folder, Name: docfile.FileName(src.keys[b.Change]), ID: src.keys[b.Change], Version: uint64(b.Change)}
			if err := st.moveAway(&c, b.Err); err != nil {
				return err
			}
			keys = append(keys, src.keys[b.Change])
		}
	}
	return nil
}

// scopeFiles is the docfile.Source of the files of scopes.
type scopeFiles struct {
	st         *Store
	ctx        context.Context
	keys       []string
	distrusted bool

	mu    sync.Mutex
	wrote map[string]believed
}

func (s *scopeFiles) Len() int { return len(s.keys) }

func (s *scopeFiles) Folders() []*docfile.Folder {
	return []*docfile.Folder{s.st.engine.Kinds.Scopes.Folder}
}

func (s *scopeFiles) Change(_, i int, c *docfile.Change) (bool, error) {
	st, key := s.st, s.keys[i]
	sc, err := st.acquireKey(key)
	if err != nil {
		return false, err
	}
	defer st.working.release(sc)
	f, before, err := sc.snapshot(s.ctx, true)
	if errors.Is(err, errs.ErrCorrupt) {
		// The log is about to let go of what it has of this scope, which the file does
		// not have: that goes into a new one, the old one into quarantine.
		if herr := sc.recall(s.ctx, err); herr == nil {
			f, before, err = sc.snapshot(s.ctx, true)
		} else if !errors.Is(herr, errs.ErrCorrupt) {
			return false, herr
		}
	}
	if errors.Is(err, errs.ErrCorrupt) {
		// Nothing can be made of it. The scope says so to whoever asks, verify too;
		// the others are not to wait.
		st.engine.Env.Logger.Error("working memory cannot be read: run memctl verify", "scope", key, "err", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	*c = docfile.Change{
		Folder: st.engine.Kinds.Scopes.Folder, Name: docfile.FileName(key), Delete: f.State.Empty(), Mtime: f.Time, ID: key, Version: f.LSN,
		Ours: func(_ vfs.Info, data func() ([]byte, error)) bool { return st.oursScope(key, before.lsn, data) },
	}
	if before.size > 0 && !s.distrusted {
		c.Before = docfile.Before{Exists: true, Size: before.size, Mtime: before.mtime}
	}
	is := believed{lsn: f.LSN}
	if !c.Delete {
		if c.Bytes, err = f.Encode(); err != nil {
			return false, err
		}
		is.size, is.mtime = int64(len(c.Bytes)), f.Time
	}
	s.mu.Lock()
	s.wrote[key] = is
	s.mu.Unlock()
	return true, nil
}

// believe notes what stands in the places now.
func (s *scopeFiles) believe() {
	w := &s.st.working
	for key, is := range s.wrote {
		w.mu.RLock()
		sc := w.open[key]
		w.mu.RUnlock()
		if sc != nil {
			sc.mu.Lock()
			sc.file, sc.grown = is, 0
			sc.mu.Unlock()
		}
	}
}

// snapshot is what the file of the scope is to be. filed says that it is written now:
// when that fails, the next round lets nothing lag.
func (s *scope) snapshot(ctx context.Context, filed bool) (*working.File, believed, error) {
	for asItIs := false; ; {
		s.mu.Lock()
		if err := s.sync(ctx); err != nil {
			s.mu.Unlock()
			return nil, believed{}, err
		}
		if !s.edited || asItIs {
			defer s.mu.Unlock()
			f := &working.File{Scope: s.scope, State: s.state.Clone(), Store: uuid.UUID(s.st.engine.Log.UUID()).String(), LSN: s.lsn, Time: s.time}
			if f.Time.IsZero() {
				f.Time = time.UnixMicro(s.st.engine.Env.Clock().UnixMicro())
			}
			if filed {
				s.lacks = lacks{}
			}
			return f, s.file, nil
		}
		s.mu.Unlock()
		switch err := s.adopt(ctx); {
		case errors.Is(err, errs.ErrTooLarge), errors.Is(err, errs.ErrBatchTooLarge), errors.Is(err, errs.ErrDiskFull):
			asItIs = true // a flush is not to wait for one scope
		case err != nil:
			return nil, believed{}, err
		}
	}
}

// scopeKeys and readScope are for a copy of the store.
func (st *Store) scopeKeys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		keys, bad, err := st.workingKeys(ctx)
		if err != nil {
			yield("", err)
			return
		}
		for _, err := range bad {
			// Damage is a copy's to tell of; what could not be read just now may be all right.
			damage := (*errs.CorruptionError)(nil)
			if !errors.As(err, &damage) {
				yield("", err)
				return
			}
			if !yield(damage.Path, nil) {
				return
			}
		}
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

func (st *Store) readScope(ctx context.Context, key string) (copy.Document, error) {
	of, err := working.ParseScope(key)
	if err != nil { // a file of which nobody can tell whose it is
		return copy.Document{}, &errs.CorruptionError{Path: key, Offset: -1, Err: err}
	}
	s := st.working.acquire(st, of)
	defer st.working.release(s)
	f, _, err := s.snapshot(ctx, false)
	if err != nil {
		return copy.Document{}, err
	}
	if f.State.Empty() {
		return copy.Document{}, errs.ErrNotFound
	}
	doc, err := f.Encode()
	return copy.Document{Bytes: doc, Version: f.LSN, Time: f.Time}, err
}

// oursScope says whether a file holds the document of a scope as this store wrote it,
// and not one from before what is known to have stood there: that somebody put back.
func (st *Store) oursScope(key string, least wal.LSN, data func() ([]byte, error)) bool {
	doc, err := data()
	if err != nil {
		return false
	}
	f, err := working.DecodeFile(doc)
	if err != nil || !f.Intact || f.Scope.Key() != key {
		return false
	}
	return least == 0 || f.LSN >= least && f.Store == uuid.UUID(st.engine.Log.UUID()).String()
}

// headBytes is enough of a file to read its scope's key: four ids of 1,024 bytes,
// each of which may take three.
const (
	headBytes = 16 << 10
	headFirst = 512
)

// scopeOf is the key of the scope whose document a file holds.
func (st *Store) scopeOf(name string) (string, error) {
	if key, ok := st.working.names.Load(name); ok {
		if _, err := st.engine.Kinds.Scopes.Stat(name); err != nil {
			return "", err
		}
		return key.(string), nil
	}
	f, err := st.engine.Env.FS.OpenFile(st.engine.Kinds.Scopes.Path(name), 0, 0)
	if err != nil {
		return "", st.engine.Env.IOError("opening", st.engine.Kinds.Scopes.Path(name), err)
	}
	defer f.Close()
	var key string
	ok := false
	for size := headFirst; !ok && size <= headBytes; size *= headBytes / headFirst { // of 100,000 nearly all are short
		head := make([]byte, size)
		n, err := f.ReadAt(head, 0)
		if n == 0 && err != nil && !errors.Is(err, io.EOF) {
			return "", st.engine.Env.IOError("reading", st.engine.Kinds.Scopes.Path(name), err)
		}
		key, ok = leadingScope(head[:n])
	}
	if !ok { // somebody has edited it, and his editor laid it out anew
		if doc, _, err := st.engine.Kinds.Scopes.Read(name, scopeLimit); err == nil {
			if f, err := working.DecodeFile(doc); err == nil {
				key, ok = f.Scope.Key(), true
			}
		}
	}
	if ok && docfile.FileName(key) == name {
		st.working.names.Store(name, key)
		return key, nil
	}
	return "", &errs.CorruptionError{Path: filepath.ToSlash(filepath.Join(st.engine.Kinds.Scopes.Name(), name)), Offset: 0, Err: errors.New("it does not begin as the document of a scope")}
}

// leadingScope is the key with which the document of a scope begins; false when
// it begins otherwise.
func leadingScope(b []byte) (key string, ok bool) {
	rest, begins := bytes.CutPrefix(b, []byte("{\n  \"scope\": "))
	line, _, ends := bytes.Cut(rest, []byte(",\n"))
	ok = begins && ends && json.Unmarshal(line, &key) == nil
	return key, ok
}

func sortedTrue(m map[string]bool) []string {
	maps.DeleteFunc(m, func(_ string, yes bool) bool { return !yes })
	return slices.Sorted(maps.Keys(m))
}
