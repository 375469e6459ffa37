package varve

import (
	"context"
	"encoding/hex"
	"fmt"
	"io/fs"
	"iter"
	"regexp"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/notes"
)

// Notes are the notes of a store: files of text, or of any bytes up to 16 MiB, at paths. They use the same log, files
// and index as memories: conditions, history and edits by hand work as they do for memories, and the file notes/<path>
// has exactly the bytes of a note.
//
// A path has 1 to 20 segments with slashes between them and at most 1,024 bytes of UTF-8 in normal form C; no segment
// is empty, . or .., and there are no control and format characters. Two notes cannot be at a and at a/b. The error of
// any other path is a *FieldError, which matches ErrInvalid.
//
// A file that was edited by hand is adopted before it is read, and before it is written. The last write to the disk
// wins, and the version that it replaced is in the history. Conditions are evaluated against the adopted version.
type Notes struct{ st *Store }

// Notes returns the notes of the store.
func (st *Store) Notes() Notes { return Notes{st} }

// NoteInfo describes a note without its content.
type NoteInfo struct {
	Path        string
	ID          string // the UUID version 5 of the path at which it was created; a rename keeps it
	Version     uint64 // for IfVersion
	Size        int64
	ContentHash string // sha256 of the content, as hexadecimal digits, for IfHash
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Properties  NoteProperties
}

// NoteProperties are the properties of a note that are not in its file: the time at which it expires, and its
// tags and other metadata.
type NoteProperties struct {
	SessionID string
	ExpiresAt time.Time // from then on the note does not exist; zero: never
	Tags      []string  // sorted, without duplicates
	Metadata  map[string]any
}

// Note is a note with its content.
type Note struct {
	NoteInfo
	Content []byte
	Text    bool // the content is valid UTF-8 without NUL
}

// NoteEntry is a note, or a folder of notes with the sum of their sizes.
type NoteEntry struct {
	NoteInfo
	Folder bool
	Notes  int // in the folder; 1 for a note
}

// NoteMatch is a line of a note that Notes.Grep has found.
type NoteMatch struct {
	Path string
	Line int    // from 1
	Text string // without the line break
}

// MatchError is the error of Notes.Edit for a text that does not occur exactly once in the note.
type MatchError = errs.MatchError

// IfHash returns the condition that the content of the note has this SHA-256, given as hexadecimal digits. Writes of
// memories and assemblies refuse this condition.
func IfHash(sha256 string) Cond {
	return condition(func(c *commit.Conditions) { h := strings.ToLower(sha256); c.Hash = &h })
}

func infoOf(i notes.Info) NoteInfo {
	return NoteInfo{Path: i.Path, ID: i.ID, Version: i.Version, Size: i.Size,
		ContentHash: hex.EncodeToString(i.ContentHash[:]), CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt,
		Properties: NoteProperties(i.Properties)}
}

// Read returns the note at a path. If no note has this path, the error is ErrNotFound.
func (ns Notes) Read(ctx context.Context, path string) (Note, error) {
	n, err := ns.st.inner.Notes.Read(ctx, path)
	if err != nil {
		return Note{}, err
	}
	return Note{NoteInfo: infoOf(n.Info), Content: n.Content, Text: n.Text()}, nil
}

func written(i notes.Info, err error) (NoteInfo, error) {
	if err != nil {
		return NoteInfo{}, err
	}
	return infoOf(i), nil
}

// Write sets the content of the note at a path. If no note has this path, Write creates it. If the note already has
// this content, Write makes no new version. When Write returns nil, the note survives a crash and a power failure.
func (ns Notes) Write(ctx context.Context, path string, content []byte, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.Write(ctx, path, content, conditionsOf(conds)))
}

// WriteAt is like Write, for content that was written at an earlier time t, such as the content of an imported
// file. WriteAt sets UpdatedAt of the note to t. If the note is new, it also sets CreatedAt to t. If t is in the
// future, WriteAt uses the current time instead.
func (ns Notes) WriteAt(ctx context.Context, path string, content []byte, t time.Time,
	conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.WriteAt(ctx, path, content, t, conditionsOf(conds)))
}

// Update replaces the content of the note at path and moves the note to newPath, in one commit. If content is nil,
// the note keeps its content. If newPath is "", the note keeps its path. The conditions are evaluated against the
// note at path. If no note has this path, the error is ErrNotFound. If another note has the new path, the error is
// a *ConflictError without a hash. If the path of another note makes the new path impossible, the error is a
// *FieldError.
func (ns Notes) Update(ctx context.Context, path, newPath string, content []byte, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.Update(ctx, path, newPath, content, conditionsOf(conds)))
}

// Append adds content at the end of a note. If no note has this path, Append creates it.
func (ns Notes) Append(ctx context.Context, path string, content []byte, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.Append(ctx, path, content, conditionsOf(conds)))
}

// Edit replaces a text that occurs exactly once in a note. If the text does not occur, or occurs more than once,
// nothing is written and the error is a *MatchError.
func (ns Notes) Edit(ctx context.Context, path, from, to string, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.Edit(ctx, path, from, to, conditionsOf(conds)))
}

// Insert inserts text after a line of a note; line 0 means the beginning of the note. If other lines follow and text
// does not end with a line break, Insert adds one.
func (ns Notes) Insert(ctx context.Context, path string, line int, text string, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.Insert(ctx, path, line, text, conditionsOf(conds)))
}

// AdoptFiles stores as versions the files in a folder of notes ("" means all notes) that were created or edited
// by hand, as a process that watches the files does by itself. It returns the number of versions that this
// process adopted during the call. A file that cannot be a note is left unchanged, and reported by an event.
func (ns Notes) AdoptFiles(ctx context.Context, folder string) (int, error) {
	n, err := ns.st.inner.Notes.AdoptFiles(ctx, folder, adopt.NewFiles(ns.st.inner.Adopter))
	ns.st.inner.Engine.Commits().Add(int64(n)) // the caller requested them
	return n, err
}

// NotesUsage has the number of notes, and the sum of their sizes in bytes.
type NotesUsage struct {
	Notes int64
	Bytes int64
}

// Usage returns the number and the total size of the notes in a folder, "" for all notes. It reads the index,
// not the notes.
func (ns Notes) Usage(ctx context.Context, folder string) (u NotesUsage, err error) {
	for e, err := range ns.st.inner.Notes.List(ctx, notes.ListOptions{Folder: folder}) {
		if err != nil {
			return NotesUsage{}, err
		}
		u.Notes++
		u.Bytes += e.Size
	}
	return u, nil
}

// LeftOut is a file in the folder notes/ that the store does not treat as a note: it is not changed, and has no
// history.
type LeftOut struct {
	Path string // relative to the store
	Why  LeftOutReason
}

// LeftOutReason is the reason why a file in notes/ is not a note.
type LeftOutReason string

// The reasons why a file in notes/ is not a note.
const (
	LeftOutLink    = LeftOutReason(adopt.LeftLink)    // links are not followed
	LeftOutSpecial = LeftOutReason(adopt.LeftSpecial) // a FIFO, a socket, a device
	LeftOutLarge   = LeftOutReason(adopt.LeftLarge)   // more than 16 MiB
	LeftOutHidden  = LeftOutReason(adopt.LeftHidden)  // its name, or that of a folder that it is in, begins with a dot
	LeftOutIgnored = LeftOutReason(adopt.LeftIgnored) // by notes_ignore in config.json
	LeftOutStore   = LeftOutReason(adopt.LeftStore)   // it is in the folder of another store
	LeftOutName    = LeftOutReason(adopt.LeftName)    // the name is not allowed in the path of a note
)

// LeftOut yields the files in the folder notes/ that are not notes, in the order of their paths. It looks at
// every file there. An error, including that of ctx, is the last value. Files that should be notes but cannot
// be adopted are yielded by Admin.RefusedEdits instead.
func (ns Notes) LeftOut(ctx context.Context) iter.Seq2[LeftOut, error] {
	return func(yield func(LeftOut, error) bool) {
		for l, err := range ns.st.inner.Adopter.LeftOut(ctx) {
			if !yield(LeftOut{l.Path, LeftOutReason(l.Why)}, err) {
				return
			}
		}
	}
}

// SetProperties replaces the properties of a note.
func (ns Notes) SetProperties(ctx context.Context, path string, p NoteProperties, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.SetProperties(ctx, path, notes.Properties(p), conditionsOf(conds)))
}

// Rename moves a note, or all notes in a folder, to another path, in one commit, and returns the number of notes that
// it moved. The notes keep their ids and their history. Rename returns an error if the new path is already a note or a
// folder, or is inside the old path. If a folder has more bytes than one commit takes, the error is ErrBatchTooLarge.
func (ns Notes) Rename(ctx context.Context, from, to string) (int, error) {
	return ns.st.inner.Notes.Rename(ctx, from, to)
}

// Delete deletes the note at a path. If no note has this path, the error is ErrNotFound.
func (ns Notes) Delete(ctx context.Context, path string, conds ...Cond) error {
	return ns.st.inner.Notes.Delete(ctx, path, conditionsOf(conds))
}

// DeleteFolder deletes all notes in a folder and returns their number. If the folder has no notes, the error is
// ErrNotFound. More than 512 notes are deleted in several commits.
func (ns Notes) DeleteFolder(ctx context.Context, folder string) (int, error) {
	return ns.st.inner.Notes.DeleteFolder(ctx, folder)
}

// List yields the notes in a folder, in the order of their paths; "" means all notes. If depth is above 0, List yields
// only the notes at most depth path segments below the folder. In place of deeper notes, List yields the folders at
// that depth that contain them.
func (ns Notes) List(ctx context.Context, folder string, depth int) iter.Seq2[NoteEntry, error] {
	return entries(ns.st.inner.Notes.List(ctx, notes.ListOptions{Folder: folder, Depth: depth}))
}

// ListAfter is like List, but yields only the entries that follow a given entry of the listing. after is the path
// of that entry: the path of a note, or the path of a folder with a slash at its end. The entry need not exist any
// more.
func (ns Notes) ListAfter(ctx context.Context, folder string, depth int, after string) iter.Seq2[NoteEntry, error] {
	return entries(ns.st.inner.Notes.List(ctx, notes.ListOptions{Folder: folder, Depth: depth, After: after}))
}

// Glob yields the notes whose paths match a pattern, in the order of their paths. A segment of the pattern is
// matched as by path.Match; ** matches any number of segments.
func (ns Notes) Glob(ctx context.Context, pattern string) iter.Seq2[NoteEntry, error] {
	return entries(ns.st.inner.Notes.Glob(ctx, pattern))
}

func entries(list iter.Seq2[notes.Entry, error]) iter.Seq2[NoteEntry, error] {
	return func(yield func(NoteEntry, error) bool) {
		for e, err := range list {
			if err != nil {
				yield(NoteEntry{}, err)
				return
			}
			if !yield(NoteEntry{NoteInfo: infoOf(e.Info), Folder: e.Folder, Notes: e.Notes}, nil) {
				return
			}
		}
	}
}

// Grep yields the lines that match a regular expression, in the note at a path or in all notes of the folder at
// that path; "" means all notes. Notes that are not text are skipped.
func (ns Notes) Grep(ctx context.Context, path string, re *regexp.Regexp) iter.Seq2[NoteMatch, error] {
	return func(yield func(NoteMatch, error) bool) {
		for m, err := range ns.st.inner.Notes.Grep(ctx, path, re.Match) {
			if !yield(NoteMatch(m), err) {
				return
			}
		}
	}
}

// History yields the versions that are kept of the note at a path, ordered by version. Versions from before a
// rename are included; their ID is the path at that time. So are versions of other notes that were at this path
// earlier. See Store.History.
func (ns Notes) History(ctx context.Context, path string) iter.Seq2[Version, error] {
	st := ns.st
	return engine.Whole(ctx, func(yield func(Version, error) bool) {
		if err := st.inner.Engine.BeginUse(); err != nil {
			yield(Version{}, err)
			return
		}
		defer st.inner.Engine.EndUse()
		some, err := st.inner.Notes.History(ctx, path, func(v history.Version, err error) bool {
			return yield(Version(v), err)
		})
		if err == nil && !some {
			err = fmt.Errorf("note %s: %w", human.Quote(path), ErrNotFound)
		}
		if err != nil {
			yield(Version{}, err)
		}
	})
}

// GetAt returns one version of the note at a path, which may be from before it was renamed; see Store.GetAt.
func (ns Notes) GetAt(ctx context.Context, path string, version uint64) (Version, error) {
	if err := ns.st.inner.Engine.BeginUse(); err != nil {
		return Version{}, err
	}
	defer ns.st.inner.Engine.EndUse()
	v, err := ns.st.inner.Notes.At(ctx, path, version)
	return Version(v), err
}

// NoteVersion is one version of a note. A rename is one version.
type NoteVersion struct {
	LSN         uint64
	Time        time.Time // the clock's time at the commit; that of a later version may be earlier
	Path        string    // path of the note at that version
	From        string    // if the version is a rename, the path before it; "" otherwise
	NoteID      string
	CreatedAt   time.Time // time at which the note was created; zero if unknown
	What        string    // "created", "changed" or "deleted"
	Size        int64
	ContentHash [32]byte // sha256 of the content
	Writer      Writer   // Number 0: unknown
	Cause       string   // reason why the store wrote the version, see CommitChange; "": a caller requested it
	Redacted    bool     // the content was removed on purpose: Size and ContentHash are zero
	RedactedAt  time.Time
	RedactedBy  Writer // Number 0: unknown
}

// NoteLog reads the versions of all notes, see Notes.Log.
type NoteLog struct {
	st  *Store
	log *notes.Log
}

// Log returns a NoteLog whose first version is the oldest one that is kept.
func (ns Notes) Log() *NoteLog { return &NoteLog{ns.st, ns.st.inner.Notes.Log()} }

// LogFrom returns a NoteLog that begins at a position of the log, such as Stats.Durable. If the What of a version is
// "changed" and its From is empty, its NoteID is the id of the note that is at the path now. If the position is no
// longer kept, the first call of Next yields a *TruncatedError, and then the versions that are kept.
func (ns Notes) LogFrom(position uint64) *NoteLog {
	return &NoteLog{ns.st, ns.st.inner.Notes.LogFrom(position)}
}

// Next yields the versions of notes that are durable now and that earlier calls have not yielded, in the order of their
// commits. The first call reads everything that is kept. At its end, it yields the versions of which only the note's
// file is left, or only the record of a redaction. Later calls read what was written since. If a part cannot be read,
// Next yields the error and continues with later versions. The caller must not leave the loop early. A NoteLog is not
// safe for concurrent use.
func (l *NoteLog) Next(ctx context.Context) iter.Seq2[NoteVersion, error] {
	return engine.Whole(ctx, func(yield func(NoteVersion, error) bool) {
		l.log.Read(ctx, func(r notes.Revision, err error) bool { return yield(NoteVersion(r), err) })
	})
}

// Position returns the position of the log up to which Next has yielded versions. A NoteLog that LogFrom returns for
// this position continues there. Position returns 0 before the first call of Next.
func (l *NoteLog) Position() uint64 { return l.log.Position() }

// Redaction returns the time t at which a version of the note at path was redacted, and the writer w that redacted
// it. redacted is false if the version was not redacted. If Purge has removed the version, the error is
// ErrNotFound.
func (ns Notes) Redaction(path string, version uint64) (t time.Time, w Writer, redacted bool, err error) {
	if err := ns.st.inner.Engine.BeginUse(); err != nil {
		return time.Time{}, Writer{}, false, err
	}
	defer ns.st.inner.Engine.EndUse()
	return ns.st.inner.Notes.Redaction(path, version)
}

// FS returns the notes as a read-only file system, which uses ctx for each call.
func (ns Notes) FS(ctx context.Context) fs.FS { return ns.st.inner.Notes.FS(ctx) }

// Purge deletes notes and removes every trace of them from the store's folder, as Admin.Purge does with memories. This
// includes the notes' properties, and their history at the paths that they had before a rename. If another note is now
// at such an earlier path, Purge redacts and overwrites only the purged note's versions at this path; see PurgeVersion.
// Traces of a note that no longer exists are removed as well; if there are no traces, the error is ErrNotFound.
func (ns Notes) Purge(ctx context.Context, paths ...string) (*PurgeReport, error) {
	k := ns.st.inner.Notes.Kind()
	var ids []string
	redacted := false
	for _, path := range paths {
		own, others, err := ns.st.inner.Notes.Traces(ctx, path)
		if err != nil {
			return nil, err
		}
		for _, o := range others {
			if _, err := ns.st.redact(ctx, k, o.Path, o.Version); err != nil {
				return nil, err
			}
			redacted = true
		}
		ids = append(ids, own...)
	}
	r, err := ns.st.purgeAll(ctx, k, ids)
	if err == nil && redacted {
		_, err = ns.st.Admin().OverwriteRedacted(ctx)
	}
	return r, err
}

// PurgeOneVersion removes the content of the one version that was written at a path. A rename of a note stores the same
// content again, as another version; PurgeOneVersion does not remove this other version. See Admin.PurgeVersion.
func (ns Notes) PurgeOneVersion(ctx context.Context, path string, version uint64) (*Redaction, error) {
	return ns.st.redact(ctx, ns.st.inner.Notes.Kind(), path, version)
}

// PurgeVersion removes the content of one version of the note at a path; the version may be from before the
// note was renamed. A rename makes a version with the same content as the version before it: PurgeVersion
// removes both. See Admin.PurgeVersion.
func (ns Notes) PurgeVersion(ctx context.Context, path string, version uint64) (*Redaction, error) {
	v, err := ns.GetAt(ctx, path, version)
	if err != nil {
		return nil, err
	}
	twins, err := ns.st.inner.Notes.Twins(ctx, path, version)
	if err != nil {
		return nil, err
	}
	k := ns.st.inner.Notes.Kind()
	for _, t := range twins {
		if _, err := ns.st.redact(ctx, k, t.Path, t.Version); err != nil {
			return nil, err
		}
	}
	return ns.st.redact(ctx, k, v.ID, version)
}
