package notes

import (
	"context"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/purgefile"
	entries "github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// The values of Revision.What.
const (
	Created = "created"
	Changed = "changed"
	Deleted = "deleted"
)

// Revision is one version of a note. A rename deletes a note and creates it at another path, but is one Revision.
type Revision struct {
	LSN         uint64
	Time        time.Time // the clock's time at the commit; a later version may have an earlier time
	Path        string    // path of the note at that version
	From        string    // if the version is a rename, the path before it; "" otherwise
	NoteID      string
	CreatedAt   time.Time // time at which the note was created; zero if unknown
	What        string    // Created, Changed or Deleted
	Size        int64
	ContentHash [32]byte
	Writer      writer.Writer // Number 0: unknown
	Cause       string        // see history.Version
	Redacted    bool          // the content was removed on purpose: Size and ContentHash are zero
	RedactedAt  time.Time
	RedactedBy  writer.Writer // Number 0: unknown
}

// Log reads the versions of all notes. It remembers the position up to which it has read, and which note was at each
// path at that position. It is not safe for concurrent use.
type Log struct {
	ns   *Notes
	next wal.LSN // position at which to continue; 0: nothing was read yet
	late bool    // the Log does not begin with the oldest version, see LogFrom
	at   map[string]lineage
	ids  map[string]string // ids of notes, by path, that are not the id derived from the path
}

// lineage identifies the note that is at a path at the position up to which Log has read. It has the note's id, the
// time at which the note was created, and the note's newest version.
type lineage struct {
	id      string
	created time.Time
	version uint64
}

// Log returns a Log whose first version is the oldest one that is kept.
func (ns *Notes) Log() *Log { return &Log{ns: ns, at: map[string]lineage{}, ids: map[string]string{}} }

// LogFrom returns a Log that begins at a position. For a Changed version, NoteID is the id that the Log has read from
// the log. If the Log has read no id for the path, NoteID is the id of the note that is at the path now.
func (ns *Notes) LogFrom(position uint64) *Log {
	l := ns.Log()
	l.next, l.late = max(position, 1), true
	return l
}

// Position returns the position in the log at which the next Read begins. Before the first Read it returns the argument
// of LogFrom, or 0 for a Log that Notes.Log returned.
func (l *Log) Position() uint64 { return l.next }

// Read yields the versions that are durable now and were not yielded before, in the order of their commits. After
// them, the first call of Read also yields versions that have no entry in the log: only their file, or the record of
// their redaction, is left. If a part of the log cannot be read, Read yields the error and continues with later
// versions. If yield returns false, the Log must not be used again.
func (l *Log) Read(ctx context.Context, yield func(Revision, error) bool) {
	eng := l.ns.engine
	if err := eng.BeginUse(); err != nil {
		yield(Revision{}, err)
		return
	}
	defer eng.EndUse()
	to, err := eng.DurableNow(ctx)
	if err != nil {
		yield(Revision{}, err)
		return
	}
	past, from, first := eng.Log().Past(), l.next, l.next == 0
	if from == to {
		return
	}
	if first {
		from, err = past.First(to)
	} else {
		from, err = past.From(ctx, from, to)
		if err != nil && ctx.Err() == nil {
			if !yield(Revision{}, err) {
				return
			}
			from, err = past.First(to) // add skips what was read before
		}
	}
	if err != nil {
		yield(Revision{}, err)
		return
	}
	b := batch{log: l, yield: yield}
	if b.purged, err = eng.Purged(); err != nil {
		yield(Revision{}, err)
		return
	}
	letter := l.ns.kind.Letter
	want := func(key []byte) bool { return len(key) > 0 && key[0] == letter }
	for e, err := range past.EntriesOf(ctx, wal.Mark{LSN: from}, to, want) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			if !b.end(ctx) {
				return
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if !yield(Revision{}, err) || ctx.Err() != nil {
				return
			}
			continue
		}
		b.add(&e)
		if !e.More && !b.end(ctx) {
			return
		}
	}
	if !b.end(ctx) {
		return
	}
	l.next = to
	if first {
		l.yieldUnlogged(ctx, to, &b)
	}
}

// batch collects the entries of one commit.
type batch struct {
	log    *Log
	purged *purgefile.Table
	yield  func(Revision, error) bool
	list   []wal.Entry // entries of notes, without their values
	lines  []seen
	sides  map[string]note.Sidecar // sidecars, by path
	gone   map[string]wal.LSN      // last versions of the sidecars that were deleted
	masked map[uint64]bool         // redacted versions of which the log has an entry
	of     map[wal.LSN]lineage     // the note of each version; only for a store with redactions
	paths  map[string]bool         // paths of these notes
	ended  bool
}

// seen is a note as one log entry describes it.
type seen struct {
	index.Entry
	previous wal.LSN
	created  bool
}

// add adds a log entry to the commit, unless an earlier Read has already read it.
func (b *batch) add(e *wal.Entry) {
	if e.LSN < b.log.next {
		return
	}
	id := e.Key[1:]
	line, view, err := entries.LineIn(e)
	if note.IsSidecar(id) {
		path := id[len(note.SidecarOf("")):]
		if e.Delete {
			if b.gone == nil {
				b.gone = map[string]wal.LSN{}
			}
			b.gone[path] = view.Previous
			return
		}
		if err == nil {
			if s, err := b.log.sidecarIn(e); err == nil {
				if b.sides == nil {
					b.sides = map[string]note.Sidecar{}
				}
				b.sides[path] = s
			}
		}
		return
	}
	if err != nil {
		b.pass(Revision{}, err)
		return
	}
	e.Value = nil
	b.list, b.lines = append(b.list, *e), append(b.lines, seen{line, view.Previous, view.Created})
}

func (l *Log) sidecarIn(e *wal.Entry) (note.Sidecar, error) {
	_, view, err := entries.LineIn(e)
	if err != nil {
		return note.Sidecar{}, err
	}
	doc, err := l.ns.engine.Codec().Doc(&view, note.MostBytes)
	if err != nil {
		return note.Sidecar{}, err
	}
	return note.DecodeSidecar(doc)
}

func (b *batch) pass(r Revision, err error) bool {
	b.ended = b.ended || !b.yield(r, err)
	return !b.ended
}

// end yields the versions of the commit, and reports whether the caller wants more.
func (b *batch) end(ctx context.Context) bool {
	l := b.log
	left := map[string]wal.LSN{} // where a note was that is at another path now, and its last version there
	for path, s := range b.sides {
		if n := len(s.Moves); n > 0 {
			left[s.Moves[n-1].Path] = s.Moves[n-1].Version
		}
		if s.ID != "" {
			l.ids[path] = s.ID
		} else {
			delete(l.ids, path)
		}
	}
	before := map[string]lineage{}
	for i := range b.list {
		e, seen := &b.list[i], &b.lines[i]
		path := e.Key[1:]
		r := Revision{LSN: e.LSN, Time: e.Reading, Path: path, Writer: l.ns.engine.Writer(e.Writer, e.LSN),
			Cause: history.CauseOf(e.Cause)}
		if e.Delete {
			was := l.lineageAt(ctx, path, seen.previous, b.gone[path])
			before[path] = was
			delete(l.at, path)
			b.note(path, e.LSN, was)
			if _, ok := b.gone[path]; ok {
				delete(l.ids, path)
			}
			if v, moved := left[path]; moved && v == seen.previous {
				continue
			}
			r.NoteID, r.CreatedAt, r.What = was.id, was.created, Deleted
		} else {
			r.What = Changed
			if seen.created {
				r.What = Created
			}
			if s, ok := b.sides[path]; ok && len(s.Moves) > 0 {
				last := s.Moves[len(s.Moves)-1]
				if was, ok := before[last.Path]; ok && was.version == last.Version {
					r.What, r.From = Changed, last.Path
				}
			}
			r.NoteID = l.idAt(ctx, path, seen.created)
			r.CreatedAt, r.Size, r.ContentHash = seen.CreatedAt, seen.Size, seen.ContentHash
			l.at[path] = lineage{r.NoteID, r.CreatedAt, r.LSN}
			b.note(path, e.LSN, l.at[path])
		}
		if b.hidden(&r) {
			continue
		}
		if !b.pass(r, nil) {
			return false
		}
	}
	b.list, b.lines, b.sides, b.gone = b.list[:0], b.lines[:0], nil, nil
	return !b.ended
}

// note records that a version at a path belongs to the note owner. It records nothing if the store has no purges and no
// redactions.
func (b *batch) note(path string, version wal.LSN, owner lineage) {
	if len(b.purged.All()) == 0 {
		return
	}
	if b.of == nil {
		b.of, b.paths = map[wal.LSN]lineage{}, map[string]bool{}
	}
	b.of[version], b.paths[path] = owner, true
}

// hidden removes the content from r if the version was redacted. It returns true if the version was purged.
func (b *batch) hidden(r *Revision) bool {
	if len(b.purged.All()) == 0 {
		return false
	}
	key := b.log.ns.kind.Key(r.Path)
	if b.purged.UpTo(key) >= r.LSN {
		return true
	}
	if row, ok := b.purged.Redacted(key, r.LSN); ok {
		if b.masked == nil {
			b.masked = map[uint64]bool{}
		}
		b.masked[r.LSN] = true
		b.log.redact(r, &row)
	}
	return false
}

func (l *Log) redact(r *Revision, row *purgefile.Row) {
	r.Redacted, r.Size, r.ContentHash = true, 0, [32]byte{}
	r.RedactedAt, r.RedactedBy = time.UnixMicro(row.At).UTC(), l.ns.engine.Writer(row.By, row.Since)
}

// idAt returns the id of the note that was at a path. created reports whether the current commit created it there. If
// the Log began after the entry that contains the id, idAt returns the id that the note at this path has now.
func (l *Log) idAt(ctx context.Context, path string, created bool) string {
	if id := l.ids[path]; id != "" {
		return id
	}
	if _, known := l.at[path]; !known && !created {
		if v, err := l.ns.find(ctx, note.SidecarOf(path)); err == nil && v.LSN != 0 && (l.next == 0 || l.late) {
			if s, err := note.DecodeSidecar(v.Doc); err == nil && s.ID != "" {
				l.ids[path] = s.ID
				return s.ID
			}
		}
	}
	return note.ID(path)
}

// lineageAt returns the lineage of a note that was deleted at a path. version and side are the positions in the log of
// the last versions of the note and of its sidecar; 0 if the note had none.
func (l *Log) lineageAt(ctx context.Context, path string, version, side wal.LSN) lineage {
	if was, ok := l.at[path]; ok {
		return was
	}
	was := lineage{id: note.ID(path), version: version}
	past, durable := l.ns.engine.Log().Past(), l.ns.engine.Log().Durable()
	if e, err := past.At(ctx, version, durable); version != 0 && err == nil && e.Key == l.ns.kind.Key(path) {
		if line, _, err := entries.LineIn(&e); err == nil {
			was.created = line.CreatedAt
		}
	}
	if e, err := past.At(ctx, side, durable); side != 0 && err == nil && e.Key == l.ns.kind.Key(note.SidecarOf(path)) {
		if s, err := l.sidecarIn(&e); err == nil && s.ID != "" {
			was.id = s.ID
		}
	}
	return was
}

// yieldUnlogged yields the versions that have no entry in the log: versions that exist only as files, and redacted
// versions whose bytes a purge has overwritten.
func (l *Log) yieldUnlogged(ctx context.Context, to wal.LSN, b *batch) {
	for i, err := range l.ns.infos(ctx, "") {
		if err != nil {
			b.pass(Revision{}, err)
			return
		}
		b.note(i.Path, i.Version, lineage{i.ID, i.CreatedAt, i.Version})
		if was, ok := l.at[i.Path]; ok && was.version >= i.Version || i.Version >= to {
			continue
		}
		l.at[i.Path] = lineage{i.ID, i.CreatedAt, i.Version}
		r := Revision{LSN: i.Version, Time: i.UpdatedAt, Path: i.Path, NoteID: i.ID, CreatedAt: i.CreatedAt, What: Changed,
			Size: i.Size, ContentHash: i.ContentHash, Writer: l.ns.engine.Writer(i.By, i.Version)}
		if i.CreatedAt.Equal(i.UpdatedAt) {
			r.What = Created
		}
		if !b.pass(r, nil) {
			return
		}
	}
	for path := range b.paths {
		for _, row := range b.purged.Redactions(l.ns.kind.Key(path)) {
			if b.masked[row.Version] || row.Store != l.ns.engine.Log().UUID() {
				continue
			}
			was, ok := b.of[row.Next]
			if !ok {
				was = l.at[path]
			}
			r := Revision{LSN: row.Version, Time: time.UnixMicro(row.Time).UTC(), Path: path, NoteID: was.id,
				CreatedAt: was.created, What: Changed, Writer: l.ns.engine.Writer(row.Writer, row.Version)}
			if was.created.UnixMicro() >= row.Time-createdWithin {
				r.What = Created
			}
			l.redact(&r, &row)
			if !b.pass(r, nil) {
				return
			}
		}
	}
}

// createdWithin is ten seconds, in microseconds. A redacted version of a note counts as the version that created the
// note if its commit was at most this long after the creation time of the note.
const createdWithin = 10_000_000

// Redaction returns the time at which a version of the note at a path was redacted, and the writer that redacted
// the version. redacted is false if the version was not redacted. If a purge removed the version, the error is
// errs.ErrNotFound.
func (ns *Notes) Redaction(path string, version uint64) (when time.Time, w writer.Writer, redacted bool, err error) {
	t, err := ns.engine.Purged()
	if err != nil {
		return when, w, false, err
	}
	if len(t.All()) == 0 {
		return when, w, false, nil
	}
	if t.UpTo(ns.kind.Key(path)) >= version {
		return when, w, false, failed(path, errs.ErrNotFound)
	}
	row, redacted := t.Redacted(ns.kind.Key(path), version)
	if !redacted {
		return when, w, false, nil
	}
	return time.UnixMicro(row.At).UTC(), ns.engine.Writer(row.By, row.Since), true, nil
}
