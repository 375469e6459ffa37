package memorystores

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/varve-db/varve"
)

// memoryList is a page of a listing of memories by path. If a memory is moved while a client reads page after page, the
// memory keeps the place in the listing that it had at the beginning, so that it is on exactly one page. But the page
// shows the memory's current path.
type memoryList struct {
	h      *handle
	folder string // prefix of the paths; "": all
	depth  int    // maximum depth; see varve.Notes.List
	after  string // key of the last entry of the previous page
	limit  int
	full   bool

	data []any
	last string // key of the last entry in data
	more bool
}

// mostListed is the maximum number of times that a page of a listing is read. A page is read again if memories were
// moved during the reading. After the last time, the page is used even if memories were moved.
const mostListed = 20

// read reads the page. since is the log position at which the listing began.
func (l *memoryList) read(ctx context.Context, since uint64) error {
	moved, err := l.h.view.movedSince(ctx, l.h.store, since)
	for range mostListed {
		if err == nil {
			err = l.collect(ctx, moved)
		}
		if err != nil {
			return err
		}
		var now map[memory]trip
		if now, err = l.h.view.movedSince(ctx, l.h.store, since); err != nil {
			return err
		}
		if maps.EqualFunc(moved, now, func(a, b trip) bool {
			return a.from == b.from && l.direct(a.to) == l.direct(b.to)
		}) {
			return nil // each memory had one place all the time
		}
		moved = now
	}
	return nil
}

// left is appended to the key of a memory that is no longer at its path. Such a key sorts directly after the key of the
// memory that may be at the path now.
const left = "\x00"

// keyed is a memory that was moved, with the key by which it is listed.
type keyed struct {
	key    string
	memory memory
}

// collect reads the page. moved has the memories that were moved since the listing began; collect lists each of them
// at the path that it had then.
func (l *memoryList) collect(ctx context.Context, moved map[memory]trip) error {
	l.data, l.more = []any{}, false
	var late []keyed
	for m, t := range moved {
		if l.direct(t.from) && l.direct(t.to) && l.isAfterCursor(t.from) {
			late = append(late, keyed{t.from + left, m})
		}
	}
	slices.SortFunc(late, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	pass := func(before string) error { // those before a key; "": all
		for len(late) > 0 && (before == "" || late[0].key < before) && !l.more {
			n, err := l.h.read(ctx, late[0].memory.String()) // wherever it is by now
			if err == nil {
				l.show(late[0].key, &n)
			} else if !errors.Is(err, errNoMemory) {
				return err
			}
			late = late[1:]
		}
		return nil
	}
	defer func() {
		if !l.more || strings.HasSuffix(l.last, left) || strings.HasSuffix(l.last, "/") {
			return
		}
		for _, t := range moved {
			if t.from == l.last { // it has its place behind the one that is there now
				return
			}
		}
		l.last += left // the last memory of the page has been shown, also if it is moved before the next page is read
	}()
	for e, err := range l.h.store.Notes().ListAfter(ctx, l.folder, l.depth, strings.TrimSuffix(l.after, left)) {
		if err != nil {
			return err
		}
		key := e.Path
		if e.Folder {
			key += "/"
		}
		if err := pass(key); err != nil || l.more {
			return err
		}
		if e.Folder {
			l.add(key, prefixObject{"/" + key, "memory_prefix"})
		} else if m := memoryOf(e.ID, e.CreatedAt); l.elsewhere(moved, m) {
			continue
		} else if l.full {
			var n varve.Note
			n, err = l.h.store.Notes().Read(ctx, e.Path)
			if err == nil && memoryOf(n.ID, n.CreatedAt) == m {
				l.show(key, &n)
			} else if errors.Is(err, varve.ErrNotFound) { // deleted, or moved: then the page is read again
				err = nil
			}
		} else {
			l.add(key, l.h.shown(&e.NoteInfo))
		}
		if err != nil || l.more {
			return err
		}
	}
	return pass("")
}

// elsewhere reports whether the listing shows the memory m at the path that it had at the beginning, because m was
// moved since.
func (l *memoryList) elsewhere(moved map[memory]trip, m memory) bool {
	t, ok := moved[m]
	return ok && l.direct(t.from) && l.direct(t.to)
}

// direct reports whether the listing shows a memory at this path as an entry of its own. It does not if the path is
// outside the listed folder, or so deep that the listing shows one entry for a folder above instead.
func (l *memoryList) direct(path string) bool {
	rest := path
	if l.folder != "" {
		var below bool
		if rest, below = strings.CutPrefix(path, l.folder+"/"); !below {
			return false
		}
	}
	return l.depth == 0 || strings.Count(rest, "/") < l.depth
}

// isAfterCursor reports whether a path comes after the last entry of the previous page.
func (l *memoryList) isAfterCursor(path string) bool {
	if strings.HasSuffix(l.after, "/") && strings.HasPrefix(path, l.after) {
		return false
	}
	return path+left > l.after
}

// show adds a memory to the page.
func (l *memoryList) show(key string, n *varve.Note) {
	o := l.h.shown(&n.NoteInfo)
	if l.full {
		o.Content = text(n.Content)
	}
	l.add(key, o)
}

// add adds an entry to the page, or records that there are more entries than the page can have.
func (l *memoryList) add(key string, entry any) {
	if len(l.data) == l.limit {
		l.more = true
		return
	}
	l.data, l.last = append(l.data, entry), key
}
