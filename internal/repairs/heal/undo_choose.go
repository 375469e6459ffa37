package heal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/journal"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/repair"
)

// chosen is the repair that Undo is asked for. Without an id it is the newest by name,
// and if that is somebody else's, an error: not an older one that nobody has named.
func (u *undo) chosen(id string) (string, error) {
	ids, err := journal.Repairs(u.o.FS, u.Dir)
	if err != nil {
		return "", err
	}
	switch {
	case id == "" && len(ids) == 0:
		return "", fmt.Errorf("no repair of this store is known: %w", errs.ErrNotFound)
	case id == "":
		id = ids[len(ids)-1]
	case !slices.Contains(ids, id):
		const few = 10
		var known []string
		for _, id := range ids[max(0, len(ids)-few):] {
			known = append(known, places.Shown(id))
		}
		return "", fmt.Errorf("no repair %s; the newest of %d known are %q: %w", human.Quote(id), len(ids), known, errs.ErrNotFound)
	}
	u.id = id
	err = u.load()
	var foreign *repair.UndoForeign
	if !errors.As(err, &foreign) || u.mark == nil {
		return id, err
	}
	tried := 0
	for _, other := range slices.Backward(ids) {
		if tried++; other == id || tried > journal.LookMost {
			continue
		}
		if _, err := journal.Read(u.o.FS, u.Dir, other, u.mark); err == nil {
			foreign.Newest = other
			break
		}
	}
	return id, foreign
}

// load reads the manifest that is to be obeyed.
func (u *undo) load() error {
	var nokey *journal.NoKey
	var err error
	if u.mark, err = u.o.keys().Mark(u.Dir, false); errors.As(err, &nokey) {
		return journal.Foreign(u.id, "this copy of the store cannot prove that it wrote the manifest: %v", nokey)
	}
	if err != nil {
		return err
	}
	list, err := journal.Read(u.o.FS, u.Dir, u.id, u.mark)
	if err != nil {
		return err
	}
	u.ends = map[string]*journal.Stands{}
	for i := range list {
		switch c := &list[i]; {
		case c.End:
			u.ends[c.Path] = c.After
		case c.Ended:
			u.end = c
		case c.Do != "":
			u.list = append(u.list, *c)
		}
	}
	return nil
}
