package project

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve"
)

// Version is a version of a memory, decoded.
type Version struct {
	varve.Version
	Memory varve.Memory // of a deletion, the zero Memory
}

// History returns the versions of a memory that are in the view, in the order of their commits; varve.ErrNotFound if
// the newest of them is not in the view, or there are none.
func (v *View) History(ctx context.Context, id string) ([]Version, error) {
	all := v.past(ctx, id)
	if len(all) == 0 {
		return nil, missing(id)
	}
	return all, ctx.Err()
}

func (v *View) past(ctx context.Context, id string) (all []Version) {
	last := true // the newest version that has a document is in the view
	for ver, err := range v.st.History(ctx, id) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			continue
		}
		if ver.Deleted {
			if last && len(all) > 0 {
				all = append(all, Version{Version: ver})
			}
			continue
		}
		m, err := ver.Decode()
		if err != nil {
			continue
		}
		if last = v.sees(&m); last {
			all = append(all, Version{ver, m})
		}
	}
	if !last {
		return nil
	}
	return all
}

// ErrOthers means that an undo would undo changes that are not by the caller, or not in the view.
var ErrOthers = errors.New("not yours to take back")

// Own names the commits that a caller may undo.
type Own struct {
	Name string // of the writer, as varve.LogOptions.By takes it
}

// Undo undoes commits of the caller: the one at o.Position, the newest, or those since o.Since. With
// plan it changes nothing. The error is ErrOthers if the commit is by another writer, or has changed a
// memory that the view does not see.
func (v *View) Undo(ctx context.Context, own Own, o varve.UndoOptions, plan bool) (*varve.UndoPlan, error) {
	if !o.Since.IsZero() {
		o.Run = own.Name
	} else if err := v.ofCaller(ctx, own, &o); err != nil {
		return nil, err
	}
	p, err := v.st.PlanUndo(ctx, o)
	if err != nil {
		return p, err
	}
	for i := range p.Changes {
		if !v.may(ctx, &p.Changes[i]) {
			return nil, fmt.Errorf("the commit has changed what this project does not see: %w", ErrOthers)
		}
	}
	for i := range p.Conflicts {
		if c := &p.Conflicts[i]; c.Kind == "memory" {
			if m, err := v.st.Get(ctx, c.ID); err == nil && !v.sees(&m) {
				return nil, fmt.Errorf("the commit has changed what this project does not see: %w", ErrOthers)
			}
		}
	}
	if plan {
		return p, nil
	}
	return v.st.Undo(ctx, p.UndoOptions)
}

// ofCaller sets the position in o to that of the caller's newest commit, or checks the given one.
func (v *View) ofCaller(ctx context.Context, own Own, o *varve.UndoOptions) error {
	if own.Name == "" {
		return fmt.Errorf("the client has no name: %w", ErrOthers)
	}
	before := uint64(0)
	for c, err := range v.st.Log(ctx, varve.LogOptions{By: own.Name, Before: before}) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if errors.Is(err, varve.ErrNotFound) {
				break
			}
			continue
		}
		if o.Position == 0 && changesMemories(&c) {
			o.Position = c.LSN
			return nil
		}
		if o.Position != 0 && c.LSN <= o.Position && o.Position < c.Next {
			return nil
		}
		if c.Next <= o.Position {
			break
		}
	}
	if o.Position == 0 {
		return fmt.Errorf("you have written nothing since you connected: %w", varve.ErrNotFound)
	}
	return fmt.Errorf("version %d is by another writer → ask the user, who can use memctl undo: %w", o.Position, ErrOthers)
}

func changesMemories(c *varve.Commit) bool {
	for i := range c.Changes {
		if c.Changes[i].Kind == "memory" && c.Changes[i].Cause != "upkeep" && c.Changes[i].Cause != "expired" {
			return true
		}
	}
	return false
}

// may reports whether the view sees a memory before and after a change.
func (v *View) may(ctx context.Context, c *varve.UndoChange) bool {
	if c.Kind != "memory" {
		return true // an assembly that a memory leaves or joins
	}
	if m, err := v.st.Get(ctx, c.ID); err == nil && !v.sees(&m) {
		return false
	}
	if c.Restores == 0 || c.What == varve.UndoDelete {
		return true
	}
	ver, err := v.st.GetAt(ctx, c.ID, c.Restores)
	if err != nil {
		return false
	}
	m, err := ver.Decode()
	return err == nil && v.sees(&m)
}
