package undo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// few is the maximum number of entries in one segment that read reads from the log one by one. If there are more
// entries, or if the log may lack one of them, read scans the whole segment instead.
const few = 16

// read yields, for changes sorted by the position of their source, the log entries that have the bytes to restore. A
// change whose entry is missing is not yielded. An entry is valid only during the call of yield. read ends when yield
// returns false.
func (u *Undoer) read(ctx context.Context, list []*change, yield func(c *change, e *wal.Entry) bool) error {
	log := u.engine.Log()
	past := log.Past()
	for len(list) > 0 {
		number := past.SegmentOf(list[0].source)
		n := 1
		for n < len(list) && past.SegmentOf(list[n].source) == number {
			n++
		}
		part := list[:n]
		list = list[n:]
		at := map[wal.LSN]*change{}
		for _, c := range part {
			at[c.source] = c
		}
		if n <= few && part[0].source >= log.Spilled() {
			for _, c := range part {
				e, err := log.ReadAt(ctx, c.source)
				if err != nil || !c.is(&e) {
					continue // perhaps released; then the archive has it
				}
				delete(at, c.source)
				if !yield(c, &e) {
					return nil
				}
			}
			if len(at) == 0 {
				continue
			}
		}
		keys := make(map[string]bool, 2*len(part))
		for _, c := range part {
			keys[c.key], keys[record.KeptKey(c.key)] = true, true
		}
		end := min(past.SegmentEnd(number), log.Durable())
		from := wal.Mark{LSN: past.Geometry.Start(number)}
		for e, err := range past.EntriesOf(ctx, from, end, func(key []byte) bool { return keys[string(key)] }) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err != nil && !lost(err) {
				return err
			}
			if err != nil {
				continue
			}
			c := at[e.LSN]
			if c == nil || !c.is(&e) {
				continue
			}
			delete(at, e.LSN)
			if !yield(c, &e) {
				return nil
			}
			if len(at) == 0 {
				break
			}
		}
	}
	return ctx.Err()
}

// is reports whether a log entry contains the version that the change restores, or a copy of that version.
func (c *change) is(e *wal.Entry) bool {
	if e.Key == c.key {
		return e.LSN == c.Restores && !e.Delete
	}
	return e.Key == record.KeptKey(c.key) && record.CopyOf(e.Value) == c.Restores
}

// document returns the index line and the exact bytes of the document in a log entry that read has yielded.
func (u *Undoer) document(c *change, e *wal.Entry) (index.Entry, []byte, error) {
	if e.Key[0] == record.Kept {
		return state.KeptDocument(u.engine.Codec(), e, places.StoredMost)
	}
	line, view, err := state.LineIn(e)
	if err != nil {
		return line, nil, err
	}
	doc, err := u.engine.Codec().Doc(&view, places.StoredMost)
	if err == nil && sha256.Sum256(doc) != line.ContentHash {
		err = errors.New("the document does not match the hash in its index line")
	}
	if err != nil {
		err = state.Invalid(e, err)
	}
	return line, doc, err
}

// hidden returns an error if the version that a change restores was redacted or purged; nil if it may be restored.
func (c *change) hidden(t *purgefile.Table) error {
	if c.What == Delete {
		return nil
	}
	if row, is := t.Redacted(c.key, c.Restores); is {
		return &errs.RedactedError{Kind: c.Kind, ID: c.ID, Version: c.Restores, At: time.UnixMicro(row.At)}
	}
	if c.Restores <= t.UpTo(c.key) {
		return fmt.Errorf("%w: version %d", ErrPurged, c.Restores)
	}
	return nil
}

// locate sets the source of each change that restores a version: the position of the log entry that has the version or
// a copy of it. If there is no such entry, or if the version was purged or redacted, locate omits the change from the
// result and adds a conflict to p.
func (u *Undoer) locate(ctx context.Context, p *Plan, docs map[string]*document, list []*change) ([]*change, error) {
	hidden, err := u.engine.Purged()
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c *change) bool {
		why := c.hidden(hidden)
		if why != nil {
			p.Conflicts = append(p.Conflicts, Conflict{Kind: c.Kind, ID: c.ID, Err: why})
		}
		return why != nil
	})
	var want []*change
	for _, c := range list {
		if c.What != Delete {
			c.source = c.Restores
			want = append(want, c)
		}
	}
	bySource := func(a, b *change) int { return cmp.Compare(a.source, b.source) }
	for _, copies := range []bool{false, true} {
		if copies {
			if err := u.copies(ctx, docs, want); err != nil {
				return nil, err
			}
		}
		found := map[*change]bool{}
		var ask []*change
		for _, c := range want {
			if c.source&7 == 0 && c.source >= u.engine.Log().Past().Geometry.Size {
				ask = append(ask, c) // otherwise it is no position of an entry
			}
		}
		slices.SortFunc(ask, bySource)
		err := u.read(ctx, ask, func(c *change, e *wal.Entry) bool {
			err := u.members(c, e)
			found[c] = err == nil
			return true
		})
		if err != nil {
			return nil, err
		}
		want = slices.DeleteFunc(want, func(c *change) bool { return found[c] })
		if len(want) == 0 {
			return list, nil
		}
	}
	none := map[*change]bool{}
	var at []wal.LSN
	for _, c := range want {
		none[c], at = true, append(at, c.Restores)
	}
	erased, err := u.engine.Log().Past().ErasedAt(ctx, u.engine.Log().Durable(), at...)
	if err != nil {
		return nil, err
	}
	for _, c := range want {
		why := fmt.Errorf("%w: version %d", ErrUnkept, c.Restores)
		if erased[c.Restores] {
			why = fmt.Errorf("%w: version %d", ErrPurged, c.Restores)
		}
		p.Conflicts = append(p.Conflicts, Conflict{Kind: c.Kind, ID: c.ID, Err: why})
	}
	return slices.DeleteFunc(list, func(c *change) bool { return none[c] }), nil
}

// members sets c.members if c restores an assembly. e is the log entry that has the version to restore.
func (u *Undoer) members(c *change, e *wal.Entry) error {
	if c.kind != u.engine.Kinds().Assemblies {
		return nil
	}
	_, doc, err := u.document(c, e)
	if err != nil {
		return err
	}
	content, err := c.kind.Parse(doc, c.ID)
	if err != nil {
		return err
	}
	c.members = slices.Clone(content.Members)
	return nil
}

// copies sets the source of each change in want to the position of a copy of the version that is to be restored; 0 if
// there is no copy. The changes in want are those for which neither the log nor the archive has the entry of the
// version itself.
func (u *Undoer) copies(ctx context.Context, docs map[string]*document, want []*change) error {
	of := map[keptKey]*change{}
	keys := map[string]bool{}
	for _, c := range want {
		if d := docs[c.key]; d.kept != 0 && d.base == c.Restores {
			c.source = d.kept
			continue
		}
		c.source = 0
		of[keptKey{c.key, c.Restores}] = c
		keys[record.KeptKey(c.key)] = true
	}
	if len(of) == 0 {
		return nil
	}
	past, to := u.engine.Log().Past(), u.engine.Log().Durable()
	first, err := past.First(to)
	if err != nil {
		return err
	}
	for e, err := range past.EntriesOf(ctx, wal.Mark{LSN: first}, to, func(key []byte) bool { return keys[string(key)] }) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil && !lost(err) {
			return err
		}
		if err != nil {
			continue
		}
		if c := of[keptKey{e.Key[1:], record.CopyOf(e.Value)}]; c != nil {
			c.source = e.LSN
		}
	}
	return ctx.Err()
}

// vector returns the vector of the version of a memory at log position pos.
func (u *Undoer) vector(ctx context.Context, c *change, pos wal.LSN) ([]float32, error) {
	e, err := u.engine.Log().ReadAt(ctx, pos)
	if errors.Is(err, errs.ErrTruncated) {
		e, err = u.engine.Log().Past().At(ctx, pos, u.engine.Log().Durable())
	}
	if err != nil {
		return nil, err
	}
	if e.Key == c.key {
		view, err := state.Read(&e)
		return view.Vector(nil), err
	}
	_, doc, err := u.document(c, &e)
	if err != nil {
		return nil, err
	}
	p, err := c.kind.Parse(doc, c.ID)
	return p.Vector, err
}
