package varve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
)

// Quarantine is the contents of quarantine/: files that were set aside by a repair, by the adoption of an edit, by a
// flush, by the recovery of the log, or by a user. Nothing is removed from it except by Drop and Purge.
type Quarantine struct{ st *Store }

// Quarantine returns access to the contents of quarantine/.
func (ad Admin) Quarantine() Quarantine { return Quarantine(ad) }

// Quarantined is one file, folder or other entry in quarantine/. Its name may be any name that the file system
// accepts.
type Quarantined struct {
	Name  string
	What  QuarantinedKind
	Mode  fs.FileMode // the type, if it is not a regular file, and the permissions
	Size  int64       // size in bytes now
	Time  time.Time   // time at which the file was set aside; without a note, its modification time
	Noted bool        // a note describes the entry; the following fields come from that note

	From    string // its former path in the store, with slashes
	ID      string // id of the document, "" if it is unknown, or if the piece is no document
	Version uint64 // the newest known version of the document at that time, 0 if it is unknown
	Reason  string
	Hash    string // "sha256:…" of the bytes that were set aside, "" if they were not hashed
	Known   string // the document's line in the index, as JSON; "" if it had none
}

// QuarantinedKind is the kind of an entry in quarantine/.
type QuarantinedKind string

// The kinds of entries in quarantine/.
const (
	QuarantinedFile    QuarantinedKind = "file"
	QuarantinedSpecial QuarantinedKind = "special" // a folder, a link, or another entry that is not a regular file
	QuarantinedNote    QuarantinedKind = "note"    // a note whose file no longer exists
	QuarantinedUndo    QuarantinedKind = "undo"    // the record of a repair by an older version: no program reads it
)

// RestoredDocument is a document that Quarantine.Restore has restored.
type RestoredDocument struct {
	Assembly bool // the document is an assembly; otherwise it is a memory
	ID       string
	Version  uint64
}

func (q Quarantine) folder() *docfile.Quarantine {
	return docfile.NewQuarantine(q.st.inner.Engine.Layout(), q.st.inner.Engine.Env().Clock)
}

// All yields the contents of quarantine/, the oldest first. An error is the last value.
func (q Quarantine) All(ctx context.Context) iter.Seq2[Quarantined, error] {
	return engine.Whole(ctx, func(yield func(Quarantined, error) bool) {
		if err := q.st.inner.Engine.BeginUse(); err != nil {
			yield(Quarantined{}, err)
			return
		}
		defer q.st.inner.Engine.EndUse()
		list, err := q.folder().Pieces()
		if err != nil {
			yield(Quarantined{}, err)
			return
		}
		for i := range list {
			if ctx.Err() != nil || !yield(quarantinedOf(&list[i]), nil) {
				return
			}
		}
	})
}

// Count returns the number of entries in quarantine/, without the undo files of older versions.
func (q Quarantine) Count() (int, error) {
	if err := q.st.inner.Engine.BeginUse(); err != nil {
		return 0, err
	}
	defer q.st.inner.Engine.EndUse()
	n, _, err := q.folder().Count()
	return n, err
}

// Get returns the entry of quarantine/ with the given name, which is a single name and not a path. If there is no such
// entry, the error is ErrNotFound.
func (q Quarantine) Get(_ context.Context, name string) (Quarantined, error) {
	if err := q.st.inner.Engine.BeginUse(); err != nil {
		return Quarantined{}, err
	}
	defer q.st.inner.Engine.EndUse()
	p, err := q.piece(name)
	return quarantinedOf(&p), err
}

func (q Quarantine) piece(name string) (docfile.Piece, error) {
	p, err := q.folder().Piece(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = notQuarantined(name)
	}
	return p, err
}

func notQuarantined(name string) error {
	return fmt.Errorf("quarantine/%s: %w", places.Shown(name), errs.ErrNotFound)
}

func quarantinedOf(p *docfile.Piece) Quarantined {
	d := Quarantined{Name: p.Name, What: QuarantinedFile, Mode: p.Info.Mode, Size: p.Info.Size, Time: p.When()}
	switch {
	case p.Lone:
		d.What = QuarantinedNote
	case !p.Info.Mode.IsRegular():
		d.What, d.Size = QuarantinedSpecial, 0
	case docfile.IsUndo(p.Name):
		d.What = QuarantinedUndo
	}
	switch n := p.Note; {
	case n != nil:
		d.Noted, d.From, d.ID, d.Version = true, n.From, n.ID, n.Version
		d.Reason, d.Hash, d.Known = n.Why, n.Hash, string(n.Known)
	case p.Err != nil:
		d.Reason = "the note about this file cannot be read: " + p.Err.Error()
	}
	return d
}

// Copy writes the exact bytes of a regular file in quarantine/ to w, and returns their number.
func (q Quarantine) Copy(ctx context.Context, name string, w io.Writer) (int64, error) {
	if err := q.st.inner.Engine.BeginUse(); err != nil {
		return 0, err
	}
	defer q.st.inner.Engine.EndUse()
	p, err := q.piece(name)
	if err != nil {
		return 0, err
	}
	if !p.Info.Mode.IsRegular() {
		return 0, fmt.Errorf("quarantine/%s is %s, not a regular file: %w",
			places.Shown(name), vfs.KindOf(p.Info.Mode), errs.ErrInvalid)
	}
	f, err := q.folder().Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return io.Copy(w, vfs.Until(ctx, io.NewSectionReader(f, 0, info.Size)))
}

// Restore writes a memory or an assembly from quarantine/, as a new version of its id. The current version, if there is
// one, stays in the history. Restore does not restore an expires_at in the past, or an embedding of a model that is no
// longer the store's. If the text was purged, the error is ErrPurged. If the file is not a document that the store
// accepts, the error is ErrInvalid. If a condition does not hold, the error is a *ConflictError. The file stays in
// quarantine/.
func (q Quarantine) Restore(ctx context.Context, name string, conds ...Cond) (RestoredDocument, error) {
	if err := q.st.inner.Engine.BeginUse(); err != nil {
		return RestoredDocument{}, err
	}
	defer q.st.inner.Engine.EndUse()
	if err := q.st.inner.Engine.Writable(); err != nil {
		return RestoredDocument{}, err
	}
	p, err := q.piece(name)
	if err != nil {
		return RestoredDocument{}, err
	}
	r, err := q.restore(ctx, &p, conds)
	if err != nil {
		err = fmt.Errorf("restoring quarantine/%s: %w", places.Shown(name), err)
	}
	return r, err
}

func (q Quarantine) restore(ctx context.Context, p *docfile.Piece, conds []Cond) (RestoredDocument, error) {
	m, a, err := q.document(p)
	if err != nil {
		return RestoredDocument{}, err
	}
	options := []PutOption{AllowMissing(), RefusePurged()}
	for _, c := range conds {
		options = append(options, c)
	}
	if a != nil {
		stored, err := q.st.Assemblies().Put(ctx, *a, options...)
		return RestoredDocument{Assembly: true, ID: a.ID, Version: stored.Version}, err
	}
	if !m.ExpiresAt.IsZero() && !q.st.inner.Engine.Env().Clock().Before(m.ExpiresAt) {
		m.ExpiresAt = time.Time{}
	}
	if n := p.Note; n != nil && n.Version != 0 && q.st.inner.Vectors.Model().LSN > n.Version {
		m.Embedding = nil
	}
	stored, err := q.st.put(ctx, *m, options[1:])
	return RestoredDocument{ID: m.ID, Version: stored.Version}, err
}

// document parses a file of quarantine/ as a memory or as an assembly: first as the kind whose folder the file
// was in, then as the other kind. One of the results is nil.
func (q Quarantine) document(p *docfile.Piece) (*Memory, *Assembly, error) {
	switch d := quarantinedOf(p); d.What {
	case QuarantinedSpecial:
		return nil, nil, fmt.Errorf("%s is not a document: %w", vfs.KindOf(d.Mode), errs.ErrInvalid)
	case QuarantinedNote, QuarantinedUndo:
		return nil, nil, fmt.Errorf("the %s file is not a document: %w", d.What, errs.ErrInvalid)
	}
	from, id := "", ""
	if n := p.Note; n != nil {
		if from = n.From; kind.At(from) != nil && kind.At(from).File(n.ID) == from {
			id = n.ID // for a document without an id: that of its own path
		}
	}
	dir, _, inFolder := strings.Cut(from, "/")
	if inFolder && dir != "tmp" && kind.At(from) == nil {
		return nil, nil, fmt.Errorf("the file was set aside from %s, which is not the path of a memory or an "+
			"assembly: %w", places.Shown(from), errs.ErrInvalid)
	}
	if k := kind.At(from); k != nil && k != kind.Memories && k != kind.Assemblies {
		return nil, nil, fmt.Errorf("the file was set aside from %s, the path of a %s, which cannot be restored by "+
			"this command: %w: write the output of memctl quarantine show --raw to that path", places.Shown(from),
			k.Noun, errs.ErrInvalid)
	}
	env := q.st.inner.Engine.Env()
	data, err := vfs.ReadText(env.FS, filepath.Join(env.Dir, docfile.QuarantineFolder, p.Name), places.StoredMost)
	if err != nil {
		return nil, nil, env.IOError("reading", filepath.Join(env.Dir, docfile.QuarantineFolder, p.Name), err)
	}
	limits := memstore.DecodeOptions{Limits: kind.Stored, Location: env.NaiveTimes}
	m, merr := memstore.Decode(data, limits)
	group := kind.At(from) == kind.Assemblies
	if merr == nil && !group {
		return m, nil, nil
	}
	groupLimits := assembly.DecodeOptions{Limits: kind.StoredAssembly, Location: env.NaiveTimes}
	a, aerr := assembly.Decode(data, groupLimits)
	switch {
	case aerr == nil:
		return nil, a, nil
	case merr == nil:
		return m, nil, nil
	}
	// A document without an id gets that of its path.
	limits.IDOptional, groupLimits.IDOptional = true, true
	switch {
	case group && id != "":
		if named, err := assembly.Decode(data, groupLimits); err == nil && named.ID == "" {
			named.ID = id
			return nil, named, nil
		}
	case kind.At(from) == kind.Memories && id != "":
		if named, err := memstore.Decode(data, limits); err == nil && named.ID == "" {
			named.ID = id
			return named, nil, nil
		}
	}
	if group {
		return nil, nil, aerr
	}
	return nil, nil, merr
}

// Drop removes entries from quarantine/ together with the notes about them, durably, and returns the names of the
// entries that it removed. If an entry is a folder, everything in it is removed. The removed bytes are not overwritten:
// see Purge. The error joins the errors of all entries that cannot be removed. For a name that does not exist, the
// error is ErrNotFound.
func (q Quarantine) Drop(ctx context.Context, names ...string) (dropped []string, err error) {
	if err := q.st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer q.st.inner.Engine.EndUse()
	if err := q.st.inner.Engine.Writable(); err != nil {
		return nil, err
	}
	held, err := q.st.inner.Engine.Log().LockFlush(ctx)
	if err != nil {
		return nil, err
	}
	defer held.Unlock()
	return q.folder().Drop(ctx, names, notQuarantined)
}
