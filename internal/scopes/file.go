package scopes

import (
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

	"github.com/google/uuid"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// A scope's file depends on the file before it: the log has changes, not states. So the old file
// must not be lost while a newer one replaces it, as a memory's file may be. Each version is
// written to a new inode and synced before it is renamed into place, and the file that it replaces
// is kept until the rename is durable: docfile.Flusher.Repeat.

// PutScopes writes the files of the changed scopes, and syncs them. distrusted means that the existing files may have
// any contents. If a scope is damaged and cannot be rebuilt, PutScopes calls spares and continues with the other
// scopes. If the log entries of a scope inflate too much to be written (see unpacks), PutScopes calls spares, and
// continues only if spares returns true. spares may be nil.
func (ws *Scopes) PutScopes(ctx context.Context, keys []string, distrusted bool,
	spares func(string, error) bool) error {
	if err := ws.engine.Kinds().Scopes.Make(); err != nil {
		return err
	}
	for first := true; len(keys) > 0; first = false {
		src := &scopeFiles{ws: ws, ctx: ctx, keys: keys, distrusted: distrusted, spares: spares, wrote: map[string]believed{}}
		ws.flusher.Files().Repeat()
		placed, result, err := ws.flusher.Files().Put(ctx, src)
		ws.flusher.Edited(ctx, result.Edits)
		if err != nil {
			return fmt.Errorf("writing working memory to files: %w", err)
		}
		if err := placed.End(placed.Sync()); err != nil {
			return fmt.Errorf("writing working memory to files: %w", err)
		}
		src.believe()
		keys = nil
		for _, b := range result.Blocked {
			if !first {
				return b.Err
			}
			c := docfile.Change{Folder: ws.engine.Kinds().Scopes.Folder, Name: kind.Scopes.FileName(src.keys[b.Change]),
				ID: src.keys[b.Change], Version: uint64(b.Change)}
			if err := ws.flusher.MoveAway(&c, b.Err); err != nil {
				return err
			}
			keys = append(keys, src.keys[b.Change])
		}
	}
	return nil
}

// scopeFiles is a docfile.Source that provides the new content of scopes' files.
type scopeFiles struct {
	ws         *Scopes
	ctx        context.Context
	keys       []string
	distrusted bool
	// called if a scope cannot be written; decides whether the others are written, see flush.Host; may be nil
	spares func(key string, err error) bool

	mu    sync.Mutex
	wrote map[string]believed
	over  errs.InflatedError
}

// Len returns the number of files. Len, Folders and Change implement docfile.Source.
func (s *scopeFiles) Len() int { return len(s.keys) }

func (s *scopeFiles) Folders() []*docfile.Folder {
	return []*docfile.Folder{s.ws.engine.Kinds().Scopes.Folder}
}

func (s *scopeFiles) Change(_, i int, c *docfile.Change) (bool, error) {
	ws, key := s.ws, s.keys[i]
	sc, err := ws.acquireKey(key)
	if err != nil {
		return false, err
	}
	defer ws.release(sc)
	f, before, err := sc.snapshot(s.ctx, s.unpacks)
	if errors.Is(err, errs.ErrCorrupt) {
		// The log is about to release entries that the file does not include: write them into a new
		// file, and move the old one to quarantine.
		if herr := sc.recall(s.ctx, err); herr == nil {
			f, before, err = sc.snapshot(s.ctx, s.unpacks)
		} else if !errors.Is(herr, errs.ErrCorrupt) {
			return false, herr
		}
	}
	if errors.Is(err, errs.ErrCorrupt) {
		// The scope cannot be rebuilt. Every operation on it and verify report that; the other
		// scopes must not wait for it.
		ws.engine.Env().Logger.Error("working memory cannot be read: run memctl verify", "scope", key, "err", err)
		if s.spares != nil {
			s.spares(key, err)
		}
		return false, nil
	}
	if over := (*errs.InflatedError)(nil); errors.As(err, &over) && s.spares != nil && s.spares(key, err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	*c = docfile.Change{
		Folder: ws.engine.Kinds().Scopes.Folder, Name: kind.Scopes.FileName(key), Delete: f.State.Empty(), Mtime: f.Time,
		ID: key, Version: f.LSN,
		Ours: func(_ vfs.Info, data func() ([]byte, error)) bool { return ws.OursScope(key, before.lsn, data) },
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

// believe records the size and the time of the files that were written. If a file has another size or time later,
// another program has edited the file.
func (s *scopeFiles) believe() {
	w := s.ws
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

// unpacks adds over, the sizes of the log entries of one scope that are compressed more than 64-fold, to the sum for
// all scopes that are being written. It returns an error if the decompressed size of the sum would be more than
// flush.UnpackedMost, unless the flusher writes all documents (Flusher.Inflates). Package flush has the same limit for
// documents.
func (s *scopeFiles) unpacks(over *errs.InflatedError) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.over
	o.Documents, o.Packed, o.Size, o.Most = o.Documents+over.Documents, o.Packed+over.Packed, o.Size+over.Size,
		flush.UnpackedMost
	if o.Size > o.Most && !s.ws.flusher.Inflates() {
		return &o // what is refused is not added to the sum
	}
	s.over = o
	return nil
}

// snapshot returns the content for the scope's file, and what this process knows about the present file. If filed is
// not nil, the caller is about to write the content. Then snapshot calls filed with the total size of the log entries
// that are compressed more than 64-fold, and filed may refuse them. After that, snapshot assumes that the file will
// include all entries: if the write fails, the next round writes the file at once.
func (s *scope) snapshot(ctx context.Context,
	filed func(over *errs.InflatedError) error) (*working.File, believed, error) {
	for asItIs := false; ; {
		s.mu.Lock()
		if err := s.sync(ctx); err != nil {
			s.mu.Unlock()
			return nil, believed{}, err
		}
		if !s.edited || asItIs {
			defer s.mu.Unlock()
			f := &working.File{Scope: s.scope, State: s.state.Clone(), Store: uuid.UUID(s.ws.engine.Log().UUID()).String(),
				LSN: s.lsn, Time: s.time}
			if !s.whole.file {
				f.Whole = s.whole.at
			}
			if f.Time.IsZero() {
				f.Time = time.UnixMicro(s.ws.engine.Env().Clock().UnixMicro())
			}
			if filed != nil {
				if err := filed(&s.lacks.over); err != nil {
					return nil, believed{}, err
				}
				s.lacks = lacks{}
			}
			return f, s.file, nil
		}
		s.mu.Unlock()
		switch err := s.adopt(ctx); {
		case errors.Is(err, errs.ErrTooLarge), errors.Is(err, errs.ErrBatchTooLarge), errors.Is(err, errs.ErrDiskFull):
			asItIs = true // a flush must not wait for one scope
		case err != nil:
			return nil, believed{}, err
		}
	}
}

// KeysToCopy yields the keys of all scopes of working memory for a copy of the store. For a damaged file whose
// scope is unknown it yields the file's path instead.
func (ws *Scopes) KeysToCopy(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		keys, bad, err := ws.Keys(ctx)
		if err != nil {
			yield("", err)
			return
		}
		for _, err := range bad {
			// A copy reports damaged files itself. Any other error may be temporary: it ends the
			// copy.
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

// ReadCopy returns the document of a scope for a copy of the store. The error is errs.ErrNotFound if the scope
// is empty.
func (ws *Scopes) ReadCopy(ctx context.Context, key string) (backup.Document, error) {
	of, err := working.ParseScope(key)
	if err != nil { // a damaged file whose scope is unknown
		return backup.Document{}, &errs.CorruptionError{Path: key, Offset: -1, Err: err}
	}
	s := ws.acquire(of)
	defer ws.release(s)
	f, _, err := s.snapshot(ctx, nil)
	if err != nil {
		return backup.Document{}, err
	}
	if f.State.Empty() {
		return backup.Document{}, errs.ErrNotFound
	}
	doc, err := f.Encode()
	return backup.Document{Bytes: doc, Version: f.LSN, Time: f.Time}, err
}

// OursScope reports whether data returns the document of the scope with this key as a store wrote it, without
// later edits. If minLSN is not 0, this store must have written the document at log position minLSN or later. If
// the document was written earlier, another program has restored it.
func (ws *Scopes) OursScope(key string, minLSN wal.LSN, data func() ([]byte, error)) bool {
	doc, err := data()
	if err != nil {
		return false
	}
	f, err := working.DecodeFile(doc)
	if err != nil || !f.Intact || f.Scope.Key() != key {
		return false
	}
	return minLSN == 0 || f.LSN >= minLSN && f.Store == uuid.UUID(ws.engine.Log().UUID()).String()
}

// headBytes is the number of bytes at the beginning of a scope's file that contain the scope's key: four ids of 1,024
// bytes, each byte of which may take three. Most keys are within the first headFirst bytes.
const (
	headBytes = 16 << 10
	headFirst = 512
)

// scopeOf returns the key of the scope whose document is in a file.
func (ws *Scopes) scopeOf(name string) (string, error) {
	if key, ok := ws.names.Load(name); ok {
		if _, err := ws.engine.Kinds().Scopes.Stat(name); err != nil {
			return "", err
		}
		return key.(string), nil
	}
	f, err := ws.engine.Env().FS.OpenFile(ws.engine.Kinds().Scopes.Path(name), 0, 0)
	if err != nil {
		return "", ws.engine.Env().IOError("opening", ws.engine.Kinds().Scopes.Path(name), err)
	}
	defer f.Close()
	var key string
	ok := false
	for size := headFirst; !ok && size <= headBytes; size *= headBytes / headFirst { // nearly all heads are short
		head := make([]byte, size)
		n, err := f.ReadAt(head, 0)
		if n == 0 && err != nil && !errors.Is(err, io.EOF) {
			return "", ws.engine.Env().IOError("reading", ws.engine.Kinds().Scopes.Path(name), err)
		}
		key, ok = flush.LeadingScope(head[:n])
	}
	if !ok { // the file was edited, and its layout changed
		if doc, _, err := ws.engine.Kinds().Scopes.Read(name, scopeLimit); err == nil {
			if f, err := working.DecodeFile(doc); err == nil {
				key, ok = f.Scope.Key(), true
			}
		}
	}
	if ok && kind.Scopes.FileName(key) == name {
		ws.names.Store(name, key)
		return key, nil
	}
	return "", &errs.CorruptionError{Path: filepath.ToSlash(filepath.Join(ws.engine.Kinds().Scopes.Name(), name)),
		Offset: 0, Err: errors.New("the file is not the document of a scope of working memory")}
}

func sortedTrue(m map[string]bool) []string {
	maps.DeleteFunc(m, func(_ string, yes bool) bool { return !yes })
	return slices.Sorted(maps.Keys(m))
}
