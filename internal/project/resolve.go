package project

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
)

// Minimum numbers of characters in an ending of an id that names a memory, for reading and for changes.
const (
	LeastRead   = 6
	LeastChange = 10
)

// Ending returns the form in which answers show an id: an ellipsis and the last LeastChange characters, or the whole id
// if it is not much longer.
func Ending(id string) string {
	if utf8.RuneCountInString(id) <= LeastChange+6 {
		return id
	}
	at := len(id)
	for range LeastChange {
		_, n := utf8.DecodeLastRuneInString(id[:at])
		at -= n
	}
	return "…" + id[at:]
}

// plain removes from typed the white space, the square brackets, the leading ellipsis and the trailing asterisk with
// which an answer may surround an id.
func plain(typed string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.Trim(typed, " []\t\n"), "…"), "*")
}

// Resolve returns the id of the memory that typed identifies. typed is an id, or the last characters of an id. The
// memory must be in the view. change reports whether the caller is going to change the memory. If change is false, the
// memory may also be a deleted one, and fewer characters are enough.
func (v *View) Resolve(ctx context.Context, typed string, change bool) (string, error) {
	if _, err := v.Get(ctx, typed); err == nil || !errors.Is(err, varve.ErrNotFound) && !errors.Is(err, varve.ErrInvalid) {
		return typed, err
	}
	ending := plain(typed)
	if ending != typed && ending != "" {
		if _, err := v.Get(ctx, ending); err == nil {
			return ending, nil
		}
	}
	n := utf8.RuneCountInString(ending)
	if n < LeastRead {
		return "", fmt.Errorf("%w → give the whole id, or at least its last %d characters", missing(typed), LeastRead)
	}
	found, err := v.ending(ctx, ending)
	if err != nil {
		return "", err
	}
	switch {
	case len(found) > 1:
		return "", fmt.Errorf("several ids end in %s: %w → give one of these ids: %s", human.Quote(typed),
			varve.ErrInvalid, strings.Join(found, ", "))
	case len(found) == 0 && change:
		return "", missing(typed)
	case len(found) == 0:
		return v.resolveDeleted(ctx, typed, ending)
	case change && n < LeastChange:
		return "", fmt.Errorf("%s has %d characters, but a change needs at least %d characters of an id: %w → if "+
			"you mean the memory whose id ends in these characters, give %s",
			human.Quote(typed), n, LeastChange, varve.ErrInvalid, Ending(found[0]))
	}
	if change {
		gone, err := v.deletedWith(ctx, ending)
		if err != nil {
			return "", err
		}
		if len(gone) > 0 {
			return "", fmt.Errorf("the id of a deleted memory also ends in %s: %w → to change the memory that exists, "+
				"give its whole id: %s", human.Quote(typed), varve.ErrInvalid, found[0])
		}
	}
	return found[0], nil
}

// mostEndings is the maximum number of ids that an error lists.
const mostEndings = 10

// ending returns the ids of memories of the view that end in the given characters, but no more than mostEndings ids.
func (v *View) ending(ctx context.Context, ending string) (found []string, err error) {
	for l, err := range v.st.Admin().Lines(ctx) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the id that ends in %s: %w", human.Quote(ending), err)
		}
		if !strings.HasSuffix(l.ID, ending) || len(found) == mostEndings {
			continue
		}
		if _, err := v.Get(ctx, l.ID); err == nil {
			found = append(found, strings.Clone(l.ID))
		}
	}
	return found, nil
}

func (v *View) resolveDeleted(ctx context.Context, typed, ending string) (string, error) {
	gone, err := v.deletedWith(ctx, ending)
	if err != nil {
		return "", err
	}
	var seen []string
	for _, id := range gone {
		if len(v.past(ctx, id)) > 0 {
			seen = append(seen, id)
		}
	}
	if len(seen) != 1 {
		return "", missing(typed)
	}
	return seen[0], nil
}

// deletedWith returns the ids of deleted memories that end in the given characters.
func (v *View) deletedWith(ctx context.Context, ending string) (all []string, err error) {
	d := v.deleted
	d.mu.Lock()
	defer d.mu.Unlock()
	to, fresh := d.to, []string(nil)
	for c, err := range v.st.Log(ctx, varve.LogOptions{Deleted: true}) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue // an entry that cannot be read names nothing
		}
		if c.Next <= d.to {
			break
		}
		to = max(to, c.Next)
		for _, ch := range c.Changes {
			if ch.Kind == "memory" {
				fresh = append(fresh, ch.ID)
			}
		}
	}
	if d.ids == nil {
		d.ids = map[string]bool{}
	}
	for _, id := range fresh {
		d.ids[id] = true
	}
	d.to = to
	for id := range d.ids {
		if !strings.HasSuffix(id, ending) {
			continue
		}
		if _, err := v.st.Get(ctx, id); errors.Is(err, varve.ErrNotFound) { // it may exist again
			all = append(all, id)
		}
	}
	return all, nil
}
