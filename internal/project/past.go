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
	Memory varve.Memory // zero for a deletion
}

// History returns the versions of a memory that are in the view, in the order of their commits. If the view has no
// version, or does not include the newest version, the error is varve.ErrNotFound.
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

// ErrOthers means that an undo would undo changes that another writer made, or that the view does not include.
var ErrOthers = errors.New("you can undo only changes that you made in this project")

// Own identifies the commits that a caller may undo.
type Own struct {
	Name string // name of the writer, as for varve.LogOptions.By
}

// Undo undoes commits of the caller: the commit at o.Position, or the newest one whose changes the view includes, or
// the commits since o.Since. If plan is true, Undo only returns the plan and changes nothing. The error is ErrOthers if
// another writer made the commit, or if the commit has changed a memory or a note that the view does not include.
func (v *View) Undo(ctx context.Context, own Own, o varve.UndoOptions, plan bool) (*varve.UndoPlan, error) {
	p, err := v.planUndo(ctx, own, o)
	if err != nil || plan {
		return p, err
	}
	return v.st.Undo(ctx, p.UndoOptions)
}

func (v *View) planUndo(ctx context.Context, own Own, o varve.UndoOptions) (*varve.UndoPlan, error) {
	if !o.Since.IsZero() {
		o.Run = own.Name
		return v.seenPlan(ctx, o)
	}
	if own.Name == "" {
		return nil, fmt.Errorf("the client has no name, so the store cannot tell which changes are its own: %w",
			ErrOthers)
	}
	var unseen error // of the newest commit that the view does not see
	for c, err := range v.st.Log(ctx, varve.LogOptions{By: own.Name}) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if errors.Is(err, varve.ErrNotFound) {
				break
			}
			continue
		}
		switch {
		case o.Position == 0 && changesContent(&c):
			newest := o
			newest.Position = c.LSN
			p, err := v.seenPlan(ctx, newest)
			if err == nil && unseen != nil && len(p.Changes)+len(p.Conflicts) == 0 {
				continue // what an undo that the view does not see has taken back
			}
			if !errors.Is(err, ErrOthers) {
				return p, err
			}
			if unseen == nil { // the client has changed the project since
				unseen = err
			}
		case o.Position != 0 && c.LSN <= o.Position && o.Position < c.Next:
			return v.seenPlan(ctx, o)
		}
		if c.Next <= o.Position {
			break
		}
	}
	switch {
	case unseen != nil:
		return nil, unseen
	case o.Position == 0:
		return nil, fmt.Errorf("you have written nothing since you connected: %w → to change what was written "+
			"earlier, use update or forget, or ask the user to run memctl undo", varve.ErrNotFound)
	}
	return nil, fmt.Errorf("version %d is not a change of yours: %w → ask the user, who can use memctl undo", o.Position,
		ErrOthers)
}

var errUnseen = fmt.Errorf("the commit has changed memories or notes outside this project: %w", ErrOthers)

// seenPlan returns the plan of an undo. It returns errUnseen if the undo would change anything that the view does not
// include.
func (v *View) seenPlan(ctx context.Context, o varve.UndoOptions) (*varve.UndoPlan, error) {
	p, err := v.st.PlanUndo(ctx, o)
	if err != nil {
		return p, err
	}
	for i := range p.Changes {
		if !v.canUndo(ctx, &p.Changes[i]) {
			return nil, errUnseen
		}
	}
	for i := range p.Conflicts {
		switch c := &p.Conflicts[i]; c.Kind {
		case "note":
			if !v.seesNote(c.ID) {
				return nil, errUnseen
			}
		case "memory":
			if m, err := v.st.Get(ctx, c.ID); err == nil && !v.sees(&m) {
				return nil, errUnseen
			}
		}
	}
	return p, nil
}

// changesContent reports whether a commit changes memories or notes. It ignores changes for upkeep and deletions of
// expired memories, because the store makes these by itself.
func changesContent(c *varve.Commit) bool {
	for i := range c.Changes {
		ch := &c.Changes[i]
		if (ch.Kind == "memory" || ch.Kind == "note") && ch.Cause != "upkeep" && ch.Cause != "expired" {
			return true
		}
	}
	return false
}

// canUndo reports whether the view may undo a change: the view includes the note, or the memory before and after
// the change. It returns true for a change of any other kind.
func (v *View) canUndo(ctx context.Context, c *varve.UndoChange) bool {
	if c.Kind == "note" {
		return v.seesNote(c.ID)
	}
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
