package notes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// Notes reads and writes the notes of an open store.
type Notes struct {
	engine  *engine.Engine
	commits *commit.Committer
	history *history.History
	disk    Disk
	clock   commit.Clock
	kind    *engine.Kind

	mu     sync.Mutex
	judged map[string]judged // state of each note's file when it was last examined, by path

	expiring expiring
}

// judged is the state of a note's file when look last examined it. flushed is the position up to which the log was
// written to files at that moment. If a flush deletes a note whose file a user has just saved, it leaves the file. That
// file is then a different note and must be examined again, even if it is unchanged.
type judged struct {
	info    vfs.Info
	flushed wal.LSN
}

// Disk adopts edits that users made to files. It is implemented by *adopt.Files.
type Disk interface {
	LookNow(ctx context.Context, folder string, names []string) (absent, emptied []string, err error)
}

// New returns the notes of a store.
func New(eng *engine.Engine, cm *commit.Committer, h *history.History, d Disk, c commit.Clock) *Notes {
	return &Notes{engine: eng, commits: cm, history: h, disk: d, clock: c, kind: eng.Kinds().All[kind.Notes.At]}
}

// Info describes a note without its content.
type Info struct {
	Path        string
	ID          string
	Version     uint64
	Size        int64
	ContentHash [32]byte // sha256 of the content
	CreatedAt   time.Time
	UpdatedAt   time.Time
	By          uint32 // number of the version's writer, see package writer; 0 in the result of a write
	Properties
}

// Properties has the properties of a note that are in its sidecar, not in its file.
type Properties struct {
	SessionID string
	ExpiresAt time.Time // zero: never
	Tags      []string  // sorted, without duplicates
	Metadata  map[string]any
}

// Note is a note with its content.
type Note struct {
	Info
	Content []byte
}

// Text reports whether the content is valid UTF-8 without NUL.
func (n *Note) Text() bool { return note.IsText(n.Content) }

// changeTries is the maximum number of attempts to change a note that other writers change meanwhile.
const changeTries = 1000

// state is the newest version of a note and of its sidecar; each may be missing.
type state struct {
	note, side engine.Version
	sidecar    note.Sidecar
}

func (s *state) exists(now time.Time) bool { return s.note.LSN != 0 && !s.expired(now) }

func (s *state) expired(now time.Time) bool {
	return !s.sidecar.Expires.IsZero() && !now.Before(s.sidecar.Expires)
}

func (s *state) info(path string) Info {
	i := Info{Path: path, ID: s.sidecar.ID, Version: s.note.LSN, Size: s.note.Line.Size,
		ContentHash: s.note.Line.ContentHash, CreatedAt: s.note.Line.CreatedAt, UpdatedAt: s.note.Line.UpdatedAt,
		By: s.note.Line.By, Properties: propertiesOf(&s.sidecar)}
	if i.ID == "" {
		i.ID = note.ID(path)
	}
	return i
}

// committed returns the Info that the note at a path has after a commit made the changes to the state s. It does not
// load the note: another writer may have replaced or deleted it since, but the result of a write must describe what was
// written.
func (s *state) committed(path string, changes []commit.DocumentChange, versions []wal.LSN) Info {
	after := *s
	for i := range changes {
		switch c := &changes[i]; {
		case c.ID == path:
			after.note = engine.Version{LSN: versions[i], Line: index.Entry{Size: int64(len(c.Doc)),
				ContentHash: sha256.Sum256(c.Doc), CreatedAt: c.Created.UTC().Truncate(time.Microsecond),
				UpdatedAt: c.Updated.UTC().Truncate(time.Microsecond)}}
		case c.ID == note.SidecarOf(path) && c.Delete:
			after.sidecar = note.Sidecar{}
		case c.ID == note.SidecarOf(path):
			after.sidecar, _ = note.DecodeSidecar(c.Doc) // which was encoded for this commit
		}
	}
	return after.info(path)
}

func propertiesOf(s *note.Sidecar) Properties {
	c := s.Clone()
	return Properties{SessionID: c.Session, ExpiresAt: c.Expires, Tags: c.Tags, Metadata: c.Metadata}
}

// load reads a note and its sidecar. If a user has edited the note's file, load adopts the edit first.
func (ns *Notes) load(ctx context.Context, path string) (s state, err error) {
	if err := ns.look(ctx, path); err != nil {
		return s, err
	}
	return ns.findWithSidecar(ctx, path)
}

// findWithSidecar returns a note and its sidecar as they were at the same moment. A note that is moved keeps its
// id in its sidecar, so a sidecar from a different moment could belong to another note.
func (ns *Notes) findWithSidecar(ctx context.Context, path string) (s state, err error) {
	for {
		if s.note, err = ns.find(ctx, path); err != nil {
			return s, err
		}
		if s.side, err = ns.find(ctx, note.SidecarOf(path)); err != nil {
			return s, err
		}
		again, aerr := ns.engine.Find(ctx, ns.kind, path, false)
		if aerr != nil && !errors.Is(aerr, errs.ErrNotFound) {
			return s, aerr
		}
		if again.LSN != s.note.LSN {
			if err := ctx.Err(); err != nil { // a busy note may change each time
				return s, err
			}
			continue
		}
		s.sidecar = note.Sidecar{}
		if s.side.LSN != 0 {
			s.sidecar, err = note.DecodeSidecar(s.side.Doc)
		}
		return s, err
	}
}

// mostJudged is the maximum number of files whose last examined state is kept.
const mostJudged = 1 << 12

// look adopts an edit of the note's file, if the file has changed since look last examined it. The path may have no
// note yet, or the store may have a newer version of the note that is not written to the file yet.
func (ns *Notes) look(ctx context.Context, path string) error {
	if ns.engine.Env().ReadOnly || ns.engine.Log().Notes().Distrusted() {
		return nil
	}
	name := ns.kind.FileName(path)
	info, err := ns.kind.Stat(name)
	if err != nil {
		return nil // the engine judges what is missing
	}
	flushed := ns.engine.Log().Flushed()
	ns.mu.Lock()
	was, ok := ns.judged[path]
	ns.mu.Unlock()
	if ok && was.flushed == flushed && was.info.Ino == info.Ino && was.info.Dev == info.Dev &&
		was.info.Size == info.Size && was.info.Mtime.Equal(info.Mtime) {
		return nil
	}
	if info.Size == 0 {
		return nil // an editor that saves in place empties the file first: see adopt
	}
	_, emptied, err := ns.disk.LookNow(ctx, ns.kind.Name(), []string{name})
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(emptied) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.judged == nil || len(ns.judged) >= mostJudged {
		ns.judged = map[string]judged{}
	}
	ns.judged[path] = judged{info, flushed}
	return nil
}

// find returns the newest version of a document, or the zero value if the document does not exist.
func (ns *Notes) find(ctx context.Context, id string) (engine.Version, error) {
	v, err := ns.engine.Find(ctx, ns.kind, id, true)
	if errors.Is(err, errs.ErrNotFound) {
		return engine.Version{}, nil
	}
	return v, err
}

// failed adds the path of the note to an error.
func failed(path string, err error) error {
	var conflict *errs.ConflictError
	if err == nil || errors.As(err, &conflict) {
		return err
	}
	return fmt.Errorf("note %s: %w", human.Quote(path), err)
}

// using begins a call on the notes at some paths. It returns an error if a path is invalid or the store is closed, and,
// if writes is true, if the store is read-only. The store is not closed before the caller calls end.
func (ns *Notes) using(writes bool, paths ...string) (end func(), err error) {
	for _, path := range paths {
		if err := note.CheckPath(path); err != nil {
			return nil, err
		}
	}
	if err := ns.engine.BeginUse(); err != nil {
		return nil, err
	}
	if writes {
		if err := ns.engine.Writable(); err != nil {
			ns.engine.EndUse()
			return nil, err
		}
	}
	return ns.engine.EndUse, nil
}

// Read returns the note at a path. If the note does not exist, the error is errs.ErrNotFound.
func (ns *Notes) Read(ctx context.Context, path string) (Note, error) {
	end, err := ns.using(false, path)
	if err != nil {
		return Note{}, err
	}
	defer end()
	s, err := ns.load(ctx, path)
	if err == nil && !s.exists(ns.now()) {
		err = errs.ErrNotFound
	}
	if err != nil {
		return Note{}, failed(path, err)
	}
	return Note{Info: s.info(path), Content: s.note.Doc}, nil
}

func (ns *Notes) now() time.Time { return ns.engine.Env().Clock() }

// replaceable returns an error if the note at a path seems to have expired only because the clock was set ahead. If a
// write treated such a note as missing, the note's text, tags and expiry would be lost.
func (ns *Notes) replaceable(path string, s *state) error {
	if s.note.LSN == 0 || !s.expired(ns.now()) {
		return nil
	}
	return commit.ConfirmExpired(ns.clock, path, s.note.LSN, s.sidecar.Expires)
}

// holds returns an error if the newest version of a note does not meet the conditions c.
func (ns *Notes) holds(path string, s *state, c *commit.Conditions) error {
	at, updated := s.note.LSN, s.note.Line.UpdatedAt
	if !s.exists(ns.now()) {
		at, updated = 0, time.Time{}
	}
	if err := c.Holds(path, at, updated); err != nil {
		return err
	}
	if c.Hash == nil {
		return nil
	}
	if has := hex.EncodeToString(s.note.Line.ContentHash[:]); at == 0 || has != *c.Hash {
		e := &errs.ConflictError{ID: path, Found: at, Hash: *c.Hash}
		if at != 0 {
			e.FoundHash = has
		}
		return e
	}
	return nil
}

// content is a function that returns the new content of a note. old is its current content; exists is false if the note
// does not exist.
type content func(old []byte, exists bool) ([]byte, error)

// change replaces the content of a note by the result of f, unless that is the current content.
func (ns *Notes) change(ctx context.Context, path string, c commit.Conditions, f content) (Info, error) {
	return ns.changeAt(ctx, path, time.Time{}, c, f)
}

// changeAt does the same as change, and gives the new version the time at. If at is zero or in the future, the version
// gets the current time.
func (ns *Notes) changeAt(ctx context.Context, path string, at time.Time, c commit.Conditions,
	f content) (Info, error) {
	end, err := ns.using(true, path)
	if err != nil {
		return Info{}, err
	}
	defer end()
	i, err := ns.retry(ctx, func() (Info, error) {
		s, err := ns.load(ctx, path)
		if err != nil {
			return Info{}, err
		}
		if err := ns.replaceable(path, &s); err != nil {
			return Info{}, err
		}
		if err := ns.holds(path, &s, &c); err != nil {
			return Info{}, err
		}
		old, exists := s.note.Doc, s.exists(ns.now())
		if !exists {
			old = nil
		}
		doc, err := f(old, exists)
		if err != nil {
			return Info{}, err
		}
		if exists && string(doc) == string(old) {
			return s.info(path), nil
		}
		if at.After(ns.now()) {
			at = time.Time{}
		}
		changes := []commit.DocumentChange{{ID: path, Doc: doc, Was: s.note, Created: at, Updated: at}}
		if s.expired(ns.now()) && s.side.LSN != 0 { // another note, without the properties of the old one
			changes = append(changes, commit.DocumentChange{ID: note.SidecarOf(path), Delete: true, Was: s.side})
		}
		versions, err := ns.commits.ChangeDocuments(ctx, ns.kind, changes)
		if err != nil {
			return Info{}, err
		}
		return s.committed(path, changes, versions), nil
	})
	return i, failed(path, err)
}

// retry calls f, and calls it again while it fails because another writer changed the note meanwhile, up to changeTries
// times. A condition of the caller that is not met is not retried.
func (ns *Notes) retry(ctx context.Context, f func() (Info, error)) (i Info, err error) {
	for range changeTries {
		i, err = f()
		var judged *errs.ConflictError
		if err == nil || errors.As(err, &judged) || !errors.Is(err, errs.ErrConflict) || ctx.Err() != nil {
			return i, err
		}
	}
	return i, err
}

// Write sets the content of the note at a path. It creates the note if it does not exist.
func (ns *Notes) Write(ctx context.Context, path string, data []byte, c commit.Conditions) (Info, error) {
	return ns.change(ctx, path, c, func([]byte, bool) ([]byte, error) { return data, nil })
}

// WriteAt does the same as Write, and gives the new version the time mtime, at which the content was written. If mtime
// is zero or in the future, the version gets the current time.
func (ns *Notes) WriteAt(ctx context.Context, path string, data []byte, mtime time.Time,
	c commit.Conditions) (Info, error) {
	return ns.changeAt(ctx, path, mtime, c, func([]byte, bool) ([]byte, error) { return data, nil })
}

// Append adds data at the end of a note. It creates the note if it does not exist.
func (ns *Notes) Append(ctx context.Context, path string, data []byte, c commit.Conditions) (Info, error) {
	return ns.change(ctx, path, c, func(old []byte, _ bool) ([]byte, error) {
		return append(append(make([]byte, 0, len(old)+len(data)), old...), data...), nil
	})
}

// Edit replaces the only occurrence of a text in a note. If the text does not occur exactly once, the error is a
// *errs.MatchError.
func (ns *Notes) Edit(ctx context.Context, path, from, to string, c commit.Conditions) (Info, error) {
	return ns.change(ctx, path, c, existing(func(old []byte) ([]byte, error) { return note.Replace(old, from, to) }))
}

// Insert inserts text after a line of a note; line 0 means the beginning. If the note has no such line, the
// error is a *errs.FieldError.
func (ns *Notes) Insert(ctx context.Context, path string, line int, text string, c commit.Conditions) (Info, error) {
	return ns.change(ctx, path, c, existing(func(old []byte) ([]byte, error) { return note.Insert(old, line, text) }))
}

// existing returns a content function that returns the result of f. If the note does not exist, the function returns an
// error.
func existing(f func(old []byte) ([]byte, error)) content {
	return func(old []byte, exists bool) ([]byte, error) {
		if !exists {
			return nil, errs.ErrNotFound
		}
		return f(old)
	}
}

// SetProperties replaces the properties of a note.
func (ns *Notes) SetProperties(ctx context.Context, path string, p Properties, c commit.Conditions) (Info, error) {
	end, err := ns.using(true, path)
	if err != nil {
		return Info{}, err
	}
	defer end()
	i, err := ns.retry(ctx, func() (Info, error) {
		s, err := ns.load(ctx, path)
		if err == nil && !s.exists(ns.now()) {
			err = errs.ErrNotFound
		}
		if err == nil {
			err = ns.holds(path, &s, &c)
		}
		if err != nil {
			return Info{}, err
		}
		next := s.sidecar.Clone()
		next.Session, next.Expires, next.Tags, next.Metadata = p.SessionID, p.ExpiresAt, p.Tags, p.Metadata
		changes, err := sidecarChange(path, next, s.side)
		if err != nil || len(changes) == 0 {
			return s.info(path), err
		}
		versions, err := ns.commits.ChangeDocuments(ctx, ns.kind, changes)
		if err != nil {
			return Info{}, err
		}
		return s.committed(path, changes, versions), nil
	})
	return i, failed(path, err)
}

// sidecarChange returns the change that makes s the sidecar of the note at a path. prev is the current version of
// the sidecar. If s is already the note's sidecar, sidecarChange returns no change.
func sidecarChange(path string, s note.Sidecar, prev engine.Version) ([]commit.DocumentChange, error) {
	c := commit.DocumentChange{ID: note.SidecarOf(path), Was: prev}
	if s.ID == note.ID(path) {
		s.ID = ""
	}
	if c.Delete = s.IsZero(); c.Delete {
		if prev.LSN == 0 {
			return nil, nil
		}
		return []commit.DocumentChange{c}, nil
	}
	var err error
	if c.Doc, err = s.Encode(); err != nil || prev.LSN != 0 && string(c.Doc) == string(prev.Doc) {
		return nil, err
	}
	return []commit.DocumentChange{c}, nil
}

// Files adopts all edited files in a folder. It is implemented by adopt.Files.
type Files interface {
	LookBelow(ctx context.Context, folder, prefix string) (adopted int, err error)
}

// AdoptFiles makes new versions of the files in a folder that users have created or edited, and returns the number of
// these files.
func (ns *Notes) AdoptFiles(ctx context.Context, folder string, files Files) (int, error) {
	if err := checkFolder(folder); err != nil {
		return 0, err
	}
	end, err := ns.using(true)
	if err != nil {
		return 0, err
	}
	defer end()
	prefix := ""
	if folder != "" {
		prefix = note.System().Path(folder) + "/"
	}
	return files.LookBelow(ctx, ns.kind.Name(), prefix)
}

// Delete deletes the note at a path. If the note does not exist, the error is errs.ErrNotFound.
func (ns *Notes) Delete(ctx context.Context, path string, c commit.Conditions) error {
	end, err := ns.using(true, path)
	if err != nil {
		return err
	}
	defer end()
	_, err = ns.retry(ctx, func() (Info, error) {
		s, err := ns.load(ctx, path)
		if err != nil {
			return Info{}, err
		}
		if err := ns.holds(path, &s, &c); err != nil {
			return Info{}, err
		}
		if !s.exists(ns.now()) {
			return Info{}, errs.ErrNotFound
		}
		_, err = ns.commits.ChangeDocuments(ctx, ns.kind, deletions(path, &s))
		return Info{}, err
	})
	return failed(path, err)
}

// deletions returns the changes that delete a note with its sidecar.
func deletions(path string, s *state) []commit.DocumentChange {
	list := []commit.DocumentChange{{ID: path, Delete: true, Was: s.note}}
	if s.side.LSN != 0 {
		list = append(list, commit.DocumentChange{ID: note.SidecarOf(path), Delete: true, Was: s.side})
	}
	return list
}

// DeleteFolder deletes all notes in a folder, in one commit if possible, and returns the number of deleted notes.
func (ns *Notes) DeleteFolder(ctx context.Context, folder string) (int, error) {
	end, err := ns.using(true, folder)
	if err != nil {
		return 0, err
	}
	defer end()
	deleted := 0
	for range changeTries {
		paths, err := ns.pathsIn(ctx, folder)
		if err != nil || len(paths) == 0 {
			if err == nil && deleted == 0 {
				err = errs.ErrNotFound
			}
			return deleted, failed(folder, err)
		}
		var changes []commit.DocumentChange
		n := min(len(paths), commit.PartsMost)
		for _, path := range paths[:n] {
			s, err := ns.load(ctx, path)
			if err != nil {
				return deleted, failed(path, err)
			}
			if s.note.LSN != 0 {
				s.note.Doc, s.side.Doc = nil, nil
				changes = append(changes, deletions(path, &s)...)
			}
		}
		if len(changes) == 0 {
			continue
		}
		_, err = ns.commits.ChangeDocuments(ctx, ns.kind, changes)
		if err == nil {
			deleted += n
		} else if !errors.Is(err, errs.ErrConflict) {
			return deleted, failed(folder, err)
		}
	}
	return deleted, failed(folder, errs.ErrConflict)
}
