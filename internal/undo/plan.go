package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/wal"
)

// change is a planned Change, with the additional data that is needed to make it.
type change struct {
	Change
	kind    *engine.Kind
	key     string
	last    wal.LSN  // the newest entry of the document, which is a deletion if Version is 0
	since   wal.LSN  // position of the first change that is undone
	source  wal.LSN  // position of the entry that has the bytes to restore; 0: nothing is restored
	members []string // ids of the members of an assembly that is restored
}

// phase returns the phase of the undo in which a change is made: see the package comment. The order matters because a
// document that the undo deletes may be at the path of a folder that a restored document needs.
func (u *Undoer) phase(c *change) int {
	group := c.kind == u.engine.Kinds().Assemblies
	switch {
	case c.What == Delete && c.kind.Tree():
		return 0
	case c.What == Delete && group:
		return 3
	case c.What == Delete:
		return 4
	case group:
		return 2
	}
	return 1
}

// plan returns the plan for undoing the selected commits, and its changes in the order in which they are to be made.
func (u *Undoer) plan(ctx context.Context, s *selection) (*Plan, []*change, error) {
	if err := u.engine.CatchUp(ctx); err != nil {
		return nil, nil, err
	}
	to := u.engine.Log().Durable()
	p := &Plan{Options: s.Options, Continues: s.continues}
	if s.released != nil {
		p.Unread = append(p.Unread, s.released)
	}
	docs, err := u.scan(ctx, s, p, to)
	if err != nil {
		return nil, nil, err
	}
	var list []*change
	for _, key := range slices.Sorted(maps.Keys(docs)) {
		k := u.engine.Kinds().Of(key)
		c, conflict := u.judge(k, key, docs[key], to)
		if left, ok := s.left[key]; ok {
			c, conflict = nil, &left
		}
		if conflict != nil {
			conflict.Kind, conflict.ID = k.Noun, key[1:]
			p.Conflicts = append(p.Conflicts, *conflict)
		}
		if c != nil {
			list = append(list, c)
		}
	}
	if list, err = u.locate(ctx, p, docs, list); err != nil {
		return nil, nil, err
	}
	if list, err = u.together(ctx, p, list); err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(list, func(a, b *change) int {
		return cmp.Or(cmp.Compare(u.phase(a), u.phase(b)), cmp.Compare(a.source, b.source))
	})
	slices.SortStableFunc(p.Conflicts, func(a,
		b Conflict) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	slices.Sort(p.Scopes)
	for _, c := range list {
		p.Changes = append(p.Changes, c.Change)
	}
	return p, list, nil
}

// none, in place of the index of a state, means that there is no such state: either nothing is to be undone, or no
// other commit has made a state.
const none = int32(-2)

// undoTarget returns in target the state to which the undo restores the document; none if nothing is to be undone.
// since is the position of the first change that is undone. other is the newest state that other commits made
// after a change that is to be undone; none if there is no such state.
func (d *document) undoTarget() (target int32, since wal.LSN, other int32) {
	at, target := d.cur, none
	for at >= 0 && (d.nodes[at].chosen || d.nodes[at].upkeep) {
		n := &d.nodes[at]
		if at = n.parent; n.chosen {
			since, target = n.lsn, n.parent
		}
	}
	first := none
	for i := at; i >= 0; i = d.nodes[i].parent {
		if d.nodes[i].chosen {
			first = d.nodes[i].parent
		}
	}
	if other = none; first != none && !(d.absent(d.cur) && d.absent(first)) {
		other = at
	}
	if target != none && d.absent(d.cur) && d.absent(target) {
		target = none
	}
	return target, since, other
}

// judge returns the change that undoes the selected commits for one document; nil if there is nothing to undo for it,
// or if nothing can be undone. The conflict is the reason why the changes of the document cannot be undone, or only
// some of them; nil if there is no conflict. to is the position up to which the log was read.
func (u *Undoer) judge(k *engine.Kind, key string, d *document, to wal.LSN) (*change, *Conflict) {
	target, since, other := d.undoTarget()
	var conflict *Conflict
	if other != none {
		conflict = u.builtUpon(&d.nodes[other])
	}
	if target == none {
		return nil, conflict
	}
	c := &change{kind: k, key: key, last: d.last, since: since}
	c.Kind, c.ID, c.Restores = k.Noun, key[1:], d.version(target)
	if !d.absent(d.cur) {
		c.Version = d.last
	}
	switch {
	case d.absent(target):
		c.What = Delete
	case c.Version == 0:
		c.What = Undelete
	default:
		c.What = Restore
	}
	if now, err := u.engine.State().Current(key); err == nil && now != c.Version && now < to {
		return nil, &Conflict{Version: now, Err: fmt.Errorf("%w: the current version, %d, is not in the log",
			ErrBuiltUpon, now)}
	}
	return c, conflict
}

// builtUpon returns the conflict of a document for which another commit made the later state n.
func (u *Undoer) builtUpon(n *node) *Conflict {
	if n.unknown {
		return &Conflict{Err: fmt.Errorf("%w: the log no longer has that change", ErrBuiltUpon)}
	}
	c := &Conflict{Version: n.lsn, Writer: u.engine.Writer(n.writer, n.lsn)}
	by := "an unknown writer"
	if c.Writer.Number != 0 {
		by = fmt.Sprintf("%d %s", c.Writer.Number, c.Writer.Name())
	}
	did := "changed it"
	switch {
	case n.cause == wal.CauseExpired:
		did = "removed it when it expired"
	case n.cause == wal.CauseEvicted:
		did = "deleted it to make room"
	case n.cause == wal.CauseEdited:
		by, did = "an edit by hand", "changed it"
	case n.deleted:
		did = "deleted it"
	}
	c.Err = fmt.Errorf("%w: %s %s, version %d", ErrBuiltUpon, by, did, n.lsn)
	return c
}

// together returns list without the changes that depend on a change which cannot be made, and adds a conflict to p for
// each omitted change. See the package comment.
func (u *Undoer) together(ctx context.Context, p *Plan, list []*change) ([]*change, error) {
	memories, assemblies := u.engine.Kinds().Memories, u.engine.Kinds().Assemblies
	for {
		done := make(map[string]*change, len(list))
		for _, c := range list {
			done[c.key] = c
		}
		before := len(list)
		var failed error
		list = slices.DeleteFunc(list, func(c *change) bool {
			var why error
			switch {
			case failed != nil:
				return false
			case c.kind == memories:
				why, failed = u.rests(ctx, c, done)
			case c.kind == assemblies && c.What != Delete:
				why, failed = u.lacks(c, done)
			}
			if why == nil || failed != nil {
				return false
			}
			delete(done, c.key)
			p.Conflicts = append(p.Conflicts, Conflict{Kind: c.Kind, ID: c.ID, Err: why})
			return true
		})
		if failed != nil || len(list) == before {
			return list, failed
		}
	}
}

// rests returns two errors. The first one is the reason why the undo cannot make the change c of a memory: an assembly
// contains the memory and would change with it, but the undo does not change this assembly. The first error is nil if
// c can be made. The second one is an error of reading. done has the changes of the undo, by key.
func (u *Undoer) rests(ctx context.Context, c *change, done map[string]*change) (error, error) {
	if c.What == Undelete {
		return nil, nil
	}
	in, _, err := u.engine.Containing(c.ID)
	if err != nil {
		return nil, err
	}
	for _, a := range in {
		if done[u.engine.Kinds().Assemblies.Key(a)] != nil {
			continue
		}
		if c.What == Restore {
			if same, err := u.sameVector(ctx, c); err != nil || same {
				return nil, err
			}
		}
		return fmt.Errorf("%w: assembly %s contains this memory, and would change, too", ErrBuiltUpon,
			human.Quote(a)), nil
	}
	return nil, nil
}

// sameVector reports whether the version that is restored has the same vector as the version that it replaces. If one
// of the versions cannot be read now, sameVector returns true: the commit that restores the version checks again
// whether assemblies would change.
func (u *Undoer) sameVector(ctx context.Context, c *change) (bool, error) {
	was, err := u.vector(ctx, c, c.Version)
	if err != nil {
		return true, ctx.Err()
	}
	is, err := u.vector(ctx, c, c.source)
	if err != nil {
		return true, ctx.Err()
	}
	return slices.Equal(was, is), nil
}

// lacks returns two errors. The first one is the reason why the change c cannot restore an assembly: after the undo,
// one of its members would not exist. The first error is nil if all would exist. The second one is an error of
// reading. done has the changes of the undo by key.
func (u *Undoer) lacks(c *change, done map[string]*change) (error, error) {
	k := u.engine.Kinds().Memories
	var missing []string
	for _, id := range c.members {
		if m := done[k.Key(id)]; m != nil {
			if m.What == Delete {
				missing = append(missing, id)
			}
			continue
		}
		if _, err := u.engine.State().Find(k.Letter, id); errors.Is(err, errs.ErrNotFound) {
			missing = append(missing, id)
		} else if err != nil {
			return nil, err
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return fmt.Errorf("%w: %w", ErrBuiltUpon, &errs.MissingMembersError{Assembly: c.ID, IDs: missing}), nil
}
