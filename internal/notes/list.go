package notes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/note"
)

// Entry is an entry of a list: a note, or a folder of notes.
type Entry struct {
	Info
	Folder bool
	Notes  int // number of notes in a folder; 1 for a note
}

// Count returns the number of notes, including those that have expired and are not deleted yet.
func (ns *Notes) Count(ctx context.Context) (int64, error) {
	n := ns.engine.State().Live(ns.kind.Letter)
	if n == 0 {
		return 0, nil
	}
	f := engine.Filters{Prefix: note.SidecarOf(""), Expired: true}
	for _, err := range ns.engine.IDs(ctx, ns.kind, f) {
		if err != nil {
			return 0, err
		}
		n--
	}
	return n, nil
}

// ListOptions select the entries of List. The zero value selects all notes.
type ListOptions struct {
	Folder string // the folder that is listed; "": all notes
	// maximum number of segments below Folder; deeper notes are replaced by the folder that contains them; 0:
	// no maximum
	Depth int
	After string // only entries after this path; with a slash at its end, after all in that folder
}

// List yields the notes and folders of notes that o selects, in the order of their paths. The size in the entry of a
// folder is the sum of the sizes of its notes.
func (ns *Notes) List(ctx context.Context, o ListOptions) iter.Seq2[Entry, error] {
	return ns.reading(ctx, func(yield func(Entry, error) bool) {
		if err := checkFolder(o.Folder); err != nil || o.Depth < 0 {
			yield(Entry{}, errors.Join(err, negative(o.Depth)))
			return
		}
		after := o.After
		if strings.HasSuffix(after, "/") {
			after += lastRune
		}
		var folder Entry // the last one; "" for none
		give := func() bool { return folder.Path == "" || yield(folder, nil) }
		for i, err := range ns.infosAfter(ctx, folderPrefix(o.Folder), after) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if o.After != after && strings.HasPrefix(i.Path, o.After) {
				continue // its path in the folder begins with lastRune
			}
			top, deeper := cut(i.Path, len(folderPrefix(o.Folder)), o.Depth)
			if !deeper {
				if !give() || !yield(Entry{Info: i, Notes: 1}, nil) {
					return
				}
				folder = Entry{}
				continue
			}
			if folder.Path != top {
				if !give() {
					return
				}
				folder = Entry{Info: Info{Path: top, CreatedAt: i.CreatedAt}, Folder: true}
			}
			folder.Notes++
			folder.Size += i.Size
			if i.UpdatedAt.After(folder.UpdatedAt) {
				folder.UpdatedAt = i.UpdatedAt
			}
		}
		give()
	})
}

func negative(depth int) error {
	if depth < 0 {
		return &errs.FieldError{Field: "depth", Value: fmt.Sprint(depth), Limit: "0 or more", Err: errs.ErrInvalid}
	}
	return nil
}

// cut returns the part of a path before the offset from, followed by the first depth segments after that offset. deeper
// reports whether more segments follow. If depth is 0, cut returns the whole path.
func cut(path string, from, depth int) (top string, deeper bool) {
	at := from
	for n := 1; depth > 0; n++ {
		i := strings.IndexByte(path[at:], '/')
		if i < 0 {
			break
		}
		if n == depth {
			return path[:at+i], true
		}
		at += i + 1
	}
	return path, false
}

func checkFolder(folder string) error {
	if folder == "" {
		return nil
	}
	return note.CheckPath(folder)
}

func folderPrefix(folder string) string {
	if folder == "" {
		return ""
	}
	return folder + "/"
}

// reading yields the values of f. It prevents the store from being closed until f has returned.
func (ns *Notes) reading(ctx context.Context, f func(yield func(Entry, error) bool)) iter.Seq2[Entry, error] {
	return engine.Reading(ctx, ns.engine, f)
}

// lastRune sorts after every character that a path may have.
const lastRune = "\U0010FFFF"

// infos yields the notes whose paths begin with a prefix, in the order of their paths. The notes are described as in
// the index.
func (ns *Notes) infos(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return ns.infosAfter(ctx, prefix, "")
}

// infosAfter is like infos, but yields only notes whose path is greater than after. If after is "", infosAfter
// yields the same notes as infos.
func (ns *Notes) infosAfter(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for l, err := range ns.listings(ctx, prefix, after) {
			if err != nil {
				yield(Info{}, err)
				return
			}
			if !yield(l.info(l.path), nil) {
				return
			}
		}
	}
}

// listing is an existing note with the data of its index line, without its content.
type listing struct {
	state
	path  string
	inLog bool // the index files do not have this version, and its Line has no mtime
}

// listings yields the notes whose paths begin with a prefix and come after the path after, in the order of their paths.
// If after is "", it does not skip any path.
func (ns *Notes) listings(ctx context.Context, prefix, after string) iter.Seq2[listing, error] {
	return func(yield func(listing, error) bool) {
		asOf, err := ns.engine.DurableNow(ctx)
		if err != nil {
			yield(listing{}, err)
			return
		}
		sidecars, err := ns.sidecars(ctx, prefix)
		if err != nil {
			yield(listing{}, err)
			return
		}
		now := ns.now()
		f := engine.Filters{Prefix: prefix, After: after}
		for l, err := range ns.engine.Lines(ctx, ns.kind, f) {
			if err != nil {
				yield(listing{}, err)
				return
			}
			if note.IsSidecar(l.ID) {
				continue
			}
			s := state{note: engine.Version{LSN: l.Line.Version, Line: l.Line}, sidecar: sidecars[l.ID]}
			if l.Line.Version >= asOf { // it may have been moved here since the sidecars were read, and has its id in one
				if s, err = ns.findWithSidecar(ctx, l.ID); err != nil {
					yield(listing{}, err)
					return
				}
				if s.note.LSN == 0 { // moved on, or deleted
					continue
				}
			}
			if !s.expired(now) && !yield(listing{s, l.ID, l.InLog}, nil) {
				return
			}
		}
	}
}

// sidecars returns the sidecars of the notes whose paths begin with a prefix. The keys of the map are the paths of the
// notes.
func (ns *Notes) sidecars(ctx context.Context, prefix string) (map[string]note.Sidecar, error) {
	list := map[string]note.Sidecar{}
	for id, err := range ns.engine.IDs(ctx, ns.kind, engine.Filters{Prefix: note.SidecarOf(prefix)}) {
		if err != nil {
			return nil, err
		}
		v, err := ns.find(ctx, id)
		if err == nil && v.LSN != 0 {
			list[strings.TrimPrefix(id, note.SidecarOf(""))], err = note.DecodeSidecar(v.Doc)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Glob yields the notes whose paths match a pattern, in the order of their paths; see note.Match.
func (ns *Notes) Glob(ctx context.Context, pattern string) iter.Seq2[Entry, error] {
	return ns.reading(ctx, func(yield func(Entry, error) bool) {
		if err := checkPattern(pattern); err != nil {
			yield(Entry{}, err)
			return
		}
		for i, err := range ns.infos(ctx, literal(pattern)) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if note.Match(pattern, i.Path) && !yield(Entry{Info: i, Notes: 1}, nil) {
				return
			}
		}
	})
}

func checkPattern(pattern string) error {
	for segment := range strings.SplitSeq(pattern, "/") {
		if _, err := path.Match(segment, ""); err != nil || segment == "" {
			return &errs.FieldError{Field: "pattern", Value: human.Quote(pattern),
				Err: errors.New("must be a pattern for paths: segments separated by slashes, in which *, ?, [a-z] " +
					"and \\ have a meaning, or ** for any number of folders")}
		}
	}
	return nil
}

// literal returns the prefix that all paths that match a pattern have in common.
func literal(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		return pattern[:i]
	}
	return pattern
}
