package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-db/varve"
)

// Lengths of the endings by which an id that memctl made may be named. These ids are UUIDv7, which begin with the
// time: those of one day have the same first five characters, while their endings are random. An id that a user chose
// is never named by an ending: rm note does not delete meeting-note.
//
// An exact id has precedence and is never searched as an ending: a command searches for an ending only if the store
// has no such id, and the argument can be the ending of a UUID. A command that changes or deletes accepts no ending
// that the history has as an id (MemoryToChange): a memory that was deleted a moment ago, by this command or by
// another process, is missing, and no other is changed instead. The search lists all ids from the index, without
// reading a document: 0.2 s in a store of 100,000 memories (measured), so about 2 s for a million. A table costs the
// same once. Commands that store a new id (put --id, assembly put --id) use it unchanged.
const (
	leastTyped = 4 // minimum number of characters of an ending that is accepted
	leastShown = 6 // minimum number of characters of an ending that is shown
	// maximum number of characters of an ending that is shown; if more are needed, the whole id is shown
	mostShown = 20
	wholeUUID = 36 // number of characters of a whole id: text of this length is not searched as an ending
)

// lineSource is a function that yields the index entries of memories, or of assemblies.
type lineSource func(ctx context.Context, filters ...varve.Filter) iter.Seq2[varve.Line, error]

// EndingError means that a text is the ending of several ids.
type EndingError struct {
	What, Ending string
	IDs          []string // the first of these ids
	More         int      // number of others
}

func (e *EndingError) Error() string {
	list := make([]string, len(e.IDs))
	for i, id := range e.IDs {
		list[i] = PrintableID(id)
	}
	s := fmt.Sprintf("%s %s: this is not an id, but several ids end in this text: %s", e.What, PrintableID(e.Ending),
		strings.Join(list, ", "))
	if e.More > 0 {
		s += fmt.Sprintf(" and %d more", e.More)
	}
	return s
}

// candidates is the maximum number of ids that an EndingError names.
const candidates = 10

// Memory calls f with id. If the store has no memory with this id, and exactly one memory has an id that ends in this
// text, Memory calls f again with the id of that memory. If several memories have such an id, the error is an
// *EndingError.
func (a *App) Memory(ctx context.Context, st *varve.Store, id string, f func(id string) error) error {
	return orEnding(ctx, "memory", st.Admin().Lines, id, func(id string) bool {
		_, err := st.Admin().GetRaw(ctx, id)
		return !errors.Is(err, varve.ErrNotFound)
	}, f)
}

// MemoryToChange is like Memory, for commands that change a memory. If a deleted memory had exactly this id,
// MemoryToChange returns an error instead of calling f with another id that has this ending.
func (a *App) MemoryToChange(ctx context.Context, st *varve.Store, id string, f func(id string) error) error {
	return a.Memory(ctx, st, id, traceless(ctx, id, st.Admin().Unknown, f))
}

// AssemblyToChange is like MemoryToChange, for the id of an assembly.
func (a *App) AssemblyToChange(ctx context.Context, st *varve.Store, id string, f func(id string) error) error {
	return a.Assembly(ctx, st, id, traceless(ctx, id, st.Assemblies().Unknown, f))
}

// traceless returns a function that calls f with the id that it gets. If this id differs from typed, the text that the
// user typed, the function first looks for typed in the history. If the history has a document with the id typed, that
// document was deleted: the function returns an error that matches varve.ErrNotFound, and does not call f.
func traceless(ctx context.Context, typed string, unknown func(context.Context, ...string) ([]string, error),
	f func(id string) error) func(id string) error {
	return func(id string) error {
		if id == typed {
			return f(id)
		}
		none, err := unknown(ctx, typed)
		switch {
		case err != nil:
			return err
		case len(none) == 0:
			return fmt.Errorf("%s was deleted: %w", PrintableID(typed), varve.ErrNotFound)
		}
		return f(id)
	}
}

// Assembly is like Memory, for the id of an assembly.
func (a *App) Assembly(ctx context.Context, st *varve.Store, id string, f func(id string) error) error {
	return orEnding(ctx, "assembly", st.Assemblies().Lines, id, func(id string) bool {
		_, err := st.Assemblies().GetRaw(ctx, id)
		return !errors.Is(err, varve.ErrNotFound)
	}, f)
}

// WholeMemory returns the whole id of the memory that arg names by its id or by an ending of it. If the store has no
// such memory, it returns arg.
func (a *App) WholeMemory(ctx context.Context, st *varve.Store, arg string) (string, error) {
	return wholeID(ctx, arg, st.Admin().GetRaw,
		func(f func(id string) error) error { return a.Memory(ctx, st, arg, f) })
}

// WholeAssembly is like WholeMemory, for an assembly.
func (a *App) WholeAssembly(ctx context.Context, st *varve.Store, arg string) (string, error) {
	return wholeID(ctx, arg, st.Assemblies().GetRaw,
		func(f func(id string) error) error { return a.Assembly(ctx, st, arg, f) })
}

func wholeID(ctx context.Context, arg string, get func(ctx context.Context, id string) ([]byte, error),
	try func(f func(id string) error) error) (string, error) {
	found := arg
	err := try(func(id string) error {
		_, err := get(ctx, id)
		if err == nil {
			found = id
		}
		return err
	})
	if errors.Is(err, varve.ErrNotFound) {
		err = nil
	}
	return found, err
}

func orEnding(ctx context.Context, noun string, lines lineSource, id string, exists func(id string) bool,
	f func(id string) error) error {
	err := f(id)
	if !missing(err) || exists(id) { // the error may be about another object
		return err
	}
	whole, eerr := named(ctx, noun, lines, id)
	switch {
	case eerr != nil:
		return eerr
	case whole == "":
		return err
	}
	return f(whole)
}

// missing reports whether err means that the document does not exist. This includes a *varve.ConflictError of a write
// that expected a version and found no document.
func missing(err error) bool {
	var c *varve.ConflictError
	return errors.Is(err, varve.ErrNotFound) || errors.As(err, &c) && c.Found == 0 && c.Expected != 0
}

// named returns the only id in lines that ends in the given text. It returns "" if no id does, or if the text
// cannot be the ending of a UUID. If several ids end in the text, the error is an *EndingError. noun names the
// kind of document in that error.
func named(ctx context.Context, noun string, lines lineSource, ending string) (string, error) {
	ending, cut := strings.CutPrefix(ending, "…")
	if len(ending) < leastTyped || len(ending) >= wholeUUID && !cut || strings.Trim(ending, "0123456789abcdef-") != "" {
		return "", nil
	}
	several := &EndingError{What: noun, Ending: ending}
	for l, err := range lines(ctx) {
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil: // the unreadable line may have the ending too
			return "", fmt.Errorf("looking for the id that ends in %s: %w", PrintableID(ending), err)
		case !strings.HasSuffix(l.ID, ending), !shortens(l.ID):
		case len(several.IDs) < candidates:
			several.IDs = append(several.IDs, strings.Clone(l.ID))
		default:
			several.More++
		}
	}
	switch {
	case len(several.IDs) > 1:
		return "", several
	case len(several.IDs) == 1:
		return several.IDs[0], nil
	}
	return "", nil
}

// shortens reports whether a table shows only the ending of this id, which a user may then type. Tables shorten the
// ids that memctl and the library make: UUIDv7 in lower case.
func shortens(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.Version() == 7 && u.String() == id
}

// Endings returns the endings by which a table shows its ids, by id. Each ending has at least leastShown characters,
// and as many more as are needed so that no other id of the store has the same ending. Endings lists all ids of the
// store once; the comment on leastTyped says how long that takes. An id that the store no longer has is shown whole.
func Endings(ctx context.Context, lines func(ctx context.Context, filters ...varve.Filter) iter.Seq2[varve.Line, error],
	ids []string) (map[string]string, error) {
	length := make(map[string]int, len(ids)) // length of the ending of each id
	like := map[string][]string{}            // ids with the same last leastShown bytes
	for _, id := range ids {
		if _, known := length[id]; known || !shortens(id) {
			continue
		}
		length[id] = typable(id, leastShown)
		key := id[len(id)-leastShown:]
		like[key] = append(like[key], id)
	}
	if len(like) > 0 {
		for l, err := range lines(ctx) {
			if err != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				continue // the list reports it; its id may be damaged too
			}
			if len(l.ID) < leastShown {
				continue
			}
			for _, id := range like[l.ID[len(l.ID)-leastShown:]] {
				if l.ID != id {
					length[id] = max(length[id], typable(id, common(id, l.ID)+1))
				}
			}
		}
	}
	short := make(map[string]string, len(ids))
	for _, id := range ids {
		if n, ok := length[id]; ok && n <= mostShown && n < len(id) {
			short[id] = id[len(id)-n:]
		} else {
			short[id] = PrintableID(id)
		}
	}
	return short, nil
}

// common returns the length in bytes of the longest common ending of two ids.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// typable returns the length, at least n, of the shortest ending of id that does not look like a flag when it
// is typed.
func typable(id string, n int) int {
	for n < len(id) && id[len(id)-n] == '-' {
		n++
	}
	return n
}

// shortMost is the maximum number of memories in a store in which Short searches for endings. The search in a store of
// this size takes a tenth of a second.
const shortMost = 50_000

// Short returns the form in which an id is shown to a user: its ending if no other id has this ending. It returns the
// whole id if the store is so large that listing all ids would take longer than the command itself, or if the ids
// cannot be listed.
func (a *App) Short(ctx context.Context, st *varve.Store, id string) string {
	if st.Admin().Stats().Memories > shortMost {
		return PrintableID(id)
	}
	short, err := Endings(ctx, st.Admin().Lines, []string{id})
	if err != nil {
		return PrintableID(id)
	}
	return short[id]
}
