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
// wins, and what it replaced is in the history. Conditions are evaluated against that version.
type Notes struct{ st *Store }

// Notes returns the notes of the store.
func (st *Store) Notes() Notes { return Notes{st} }

// NoteInfo is what is known of a note without its content.
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

// NoteProperties are the properties of a note that are not in its file.
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

// NoteMatch is a line of a note.
type NoteMatch struct {
	Path string
	Line int    // from 1
	Text string // without the line break
}

// MatchError is the error of Notes.Edit for a text that does not occur exactly once in the note.
type MatchError = errs.MatchError

// IfHash holds if the content of the note has this sha256, as hexadecimal digits. Writes of memories and assemblies
// refuse it.
func IfHash(sha256 string) Cond {
	return condition(func(c *commit.Conditions) { h := strings.ToLower(sha256); c.Hash = &h })
}

func infoOf(i notes.Info) NoteInfo {
	return NoteInfo{Path: i.Path, ID: i.ID, Version: i.Version, Size: i.Size,
		ContentHash: hex.EncodeToString(i.ContentHash[:]), CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt,
		Properties: NoteProperties(i.Properties)}
}

// Read returns a note, or ErrNotFound.
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

// Write sets the content of the note at a path, and creates the note if there is none. Writing the current content
// makes no version. When Write returns nil, the note survives a crash and a power failure.
func (ns Notes) Write(ctx context.Context, path string, content []byte, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.Write(ctx, path, content, conditionsOf(conds)))
}

// WriteAt is Write for content that was written earlier, such as that of an imported file: at becomes UpdatedAt of the
// note, and CreatedAt of a new one. A time in the future counts as now.
func (ns Notes) WriteAt(ctx context.Context, path string, content []byte, at time.Time,
	conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.WriteAt(ctx, path, content, at, conditionsOf(conds)))
}

// Append adds content at the end of a note, and creates the note if there is none.
func (ns Notes) Append(ctx context.Context, path string, content []byte, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.Append(ctx, path, content, conditionsOf(conds)))
}

// Edit replaces the one occurrence of a text in a note. If there is none, or more than one, nothing is written and the
// error is a *MatchError.
func (ns Notes) Edit(ctx context.Context, path, from, to string, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.Edit(ctx, path, from, to, conditionsOf(conds)))
}

// Insert inserts text after a line of a note; 0 is the beginning. If something follows, the text gets a line break at
// its end if it has none.
func (ns Notes) Insert(ctx context.Context, path string, line int, text string, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.Insert(ctx, path, line, text, conditionsOf(conds)))
}

// AdoptFiles adopts the files in a folder of notes, "" for all, that were created or edited by hand, as a process that
// watches the files does by itself. It returns how many versions this process adopted meanwhile. A file that cannot be
// a note is left unchanged, and reported by an event.
func (ns Notes) AdoptFiles(ctx context.Context, folder string) (int, error) {
	n, err := ns.st.inner.Notes.AdoptFiles(ctx, folder, adopt.NewFiles(ns.st.inner.Adopter))
	ns.st.inner.Engine.Commits().Add(int64(n)) // the caller requested them
	return n, err
}

// SetProperties replaces the properties of a note.
func (ns Notes) SetProperties(ctx context.Context, path string, p NoteProperties, conds ...Cond) (NoteInfo, error) {
	return written(ns.st.inner.Notes.SetProperties(ctx, path, notes.Properties(p), conditionsOf(conds)))
}

// Rename gives a note, or all notes in a folder, another path, in one commit, and returns how many notes it moved. The
// history follows, and the ids stay. Rename returns an error if a note or a folder is at the new path, if the new path
// is inside the old one, and for a folder with more bytes than a commit takes (ErrBatchTooLarge).
func (ns Notes) Rename(ctx context.Context, from, to string) (int, error) {
	return ns.st.inner.Notes.Rename(ctx, from, to)
}

// Delete deletes a note; ErrNotFound if there is none.
func (ns Notes) Delete(ctx context.Context, path string, conds ...Cond) error {
	return ns.st.inner.Notes.Delete(ctx, path, conditionsOf(conds))
}

// DeleteFolder deletes all notes in a folder, and returns their number; ErrNotFound if there are none. More than 512
// notes are deleted in several commits.
func (ns Notes) DeleteFolder(ctx context.Context, folder string) (int, error) {
	return ns.st.inner.Notes.DeleteFolder(ctx, folder)
}

// List yields the notes in a folder, "" for all, by path. With a depth above 0 it yields entries at most that many
// segments below the folder: notes, and the folders of notes that are deeper.
func (ns Notes) List(ctx context.Context, folder string, depth int) iter.Seq2[NoteEntry, error] {
	return entries(ns.st.inner.Notes.List(ctx, notes.ListOptions{Folder: folder, Depth: depth}))
}

// Glob yields the notes whose paths match a pattern, by path: segments as in path.Match, and ** for any number of
// segments.
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

// Grep yields the lines that match a regular expression, of the note or the notes in the folder at a path, "" for all
// notes. A note that is not text is skipped.
func (ns Notes) Grep(ctx context.Context, path string, re *regexp.Regexp) iter.Seq2[NoteMatch, error] {
	return func(yield func(NoteMatch, error) bool) {
		for m, err := range ns.st.inner.Notes.Grep(ctx, path, re.Match) {
			if !yield(NoteMatch(m), err) {
				return
			}
		}
	}
}

// History yields the versions of the note at a path that are still kept, including those from before it was renamed,
// whose ID is the path at that time; see Store.History.
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

// FS returns the notes as a read-only file system, which uses ctx for each call.
func (ns Notes) FS(ctx context.Context) fs.FS { return ns.st.inner.Notes.FS(ctx) }

// Purge deletes notes and removes every trace of them from the store's folder, as Admin.Purge does with memories: their
// properties, and also their history at the paths that they had before. If another note is at such a path now, the
// versions from before are redacted, see PurgeVersion, and overwritten. Traces of a note that does not exist now are
// searched as well: ErrNotFound if there are none.
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

// PurgeVersion removes the content of one version of the note at a path, which may be from before it was renamed; see
// Admin.PurgeVersion. A rename makes a version with the content of the previous one: the two are removed together.
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
