package undo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// batch is one commit in the log, without the documents.
type batch struct {
	at, next wal.LSN
	time     time.Time // clock time of the commit
	writer   uint32
	entries  []entry
	expires  bool // the commit deleted an expired document
	upkeep   bool // the commit changed only data that the store derives
}

// entry is an entry of the log without the document in it.
type entry struct {
	key      string
	lsn      wal.LSN
	previous wal.LSN
	restores wal.LSN
	cause    uint8
	deleted  bool
	created  bool
}

// undoes reports whether an undo wrote the entry.
func (e *entry) undoes() bool { return e.cause == wal.CauseUndo || e.cause == wal.CauseUndoing }

// purge reports whether the commit belongs to a purge, that is, whether it names purged or redacted documents.
func (b *batch) purge() bool {
	return slices.ContainsFunc(b.entries, func(e entry) bool { return e.key == state.PurgeKey })
}

// lost reports whether an error of reading the log means damage or a hole, after which reading continues.
func lost(err error) bool {
	return errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrTruncated)
}

// batches yields the commits in [from, to), until yield returns false. For each damaged or missing part of the
// log, batches yields an error instead of a batch. A batch is valid only until yield returns.
func (u *Undoer) batches(ctx context.Context, from, to wal.LSN, yield func(b *batch, err error) bool) error {
	var b batch
	give := func() bool {
		if len(b.entries) == 0 {
			return true
		}
		upkeep, others := false, false
		for i := range b.entries {
			switch c := b.entries[i].cause; c {
			case wal.CauseUpkeep:
				upkeep = true
			case 0: // an assembly that changed along with a memory, unless a caller asked for all
			default:
				b.expires = b.expires || c == wal.CauseExpired
				others = true
			}
		}
		b.upkeep = upkeep && !others
		ok := yield(&b, nil)
		b = batch{entries: b.entries[:0]}
		return ok
	}
	for e, err := range u.engine.Log().Past().Entries(ctx, wal.Mark{LSN: from}, to) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.entries = b.entries[:0] // a commit that cannot be read as a whole
			if !lost(err) {
				return err
			}
			if !yield(nil, err) {
				return nil
			}
			continue
		}
		if len(b.entries) > 0 && b.next != e.LSN && !give() { // the entries between were erased
			return nil
		}
		view, err := state.Read(&e)
		if err != nil {
			if !yield(nil, err) {
				return nil
			}
			continue
		}
		if len(b.entries) == 0 {
			b.at, b.time, b.writer = e.LSN, e.Reading, 0
		}
		if b.writer == 0 {
			b.writer = e.Writer
		}
		b.next = e.LSN + e.Size
		b.entries = append(b.entries, entry{key: strings.Clone(e.Key), lsn: e.LSN, previous: view.Previous,
			restores: e.Restores, cause: e.Cause, deleted: e.Delete, created: view.Created})
		if !e.More && !give() {
			return nil
		}
	}
	give()
	return ctx.Err()
}

// node is one state of a document, made by one log entry.
type node struct {
	lsn     wal.LSN
	writer  uint32
	parent  int32 // index of the state that this one replaced; -1: the state before the first commit that is undone
	cause   uint8
	chosen  bool // a commit that is undone made the state
	upkeep  bool
	deleted bool
	unknown bool // the node stands for states whose entries are not in the log
}

// document is the history of a document in the log since the first commit that is to be undone.
type document struct {
	base  wal.LSN // the entry before the first commit that is undone; 0: none
	gone  bool    // the document did not exist then, or its entry was a deletion
	kept  wal.LSN // position of a copy of the version at base; 0: none was seen
	last  wal.LSN // position of the newest entry
	cur   int32   // index of the state that the newest entry made
	nodes []node
	// undos maps entries of undos to the states that they restored: an undo that undoes another undo
	// names its entry.
	undos map[wal.LSN]int32
}

// add adds to the history the state that the log entry e makes. If an undo wrote e, the undo is not undone itself, and
// the state that it restored is known, the document returns to that state instead.
func (d *document) add(e *entry, writer uint32, chosen, upkeep bool) {
	if len(d.nodes) > 0 && e.previous != d.last && (e.deleted || !e.created) {
		// The replaced version is not in the log: it was erased, or invented when the index was rebuilt.
		d.nodes = append(d.nodes, node{parent: d.cur, unknown: true})
		d.cur = int32(len(d.nodes) - 1)
	}
	d.last = e.lsn
	if e.undoes() && !chosen {
		if at, ok := d.find(e); ok {
			if d.undos == nil {
				d.undos = map[wal.LSN]int32{}
			}
			d.cur, d.undos[e.lsn] = at, at
			return
		}
	}
	d.nodes = append(d.nodes, node{lsn: e.lsn, writer: writer, parent: d.cur, cause: e.cause, chosen: chosen,
		upkeep: upkeep, deleted: e.deleted})
	d.cur = int32(len(d.nodes) - 1)
}

// find returns the state that an undo restored when it wrote the log entry e. It returns false if this state is
// unknown.
func (d *document) find(e *entry) (int32, bool) {
	if e.deleted && e.restores == 0 {
		return d.findAbsent()
	}
	if e.restores == d.base && e.deleted == d.gone {
		return -1, true
	}
	if at, ok := d.undos[e.restores]; ok && d.absent(at) == e.deleted {
		return at, true
	}
	for i := len(d.nodes) - 1; i >= 0; i-- {
		if n := &d.nodes[i]; n.lsn == e.restores && n.deleted == e.deleted && n.lsn != 0 {
			return int32(i), true
		}
	}
	return 0, false
}

// findAbsent returns a state in which the document does not exist. It is for an undo that restored such a state and
// whose log entry does not name the entry of that state: an entry that creates a document names the deletion before it
// only while the overlay has that deletion. The result is the last such state on the way to the present state, or else
// any such state. It returns false if the history has no such state.
func (d *document) findAbsent() (int32, bool) {
	for i := d.cur; i >= 0; {
		if i = d.nodes[i].parent; d.absent(i) {
			return i, true
		}
	}
	for i := len(d.nodes) - 1; i >= 0; i-- {
		if d.nodes[i].deleted {
			return int32(i), true
		}
	}
	return -1, d.gone
}

// absent reports whether the document does not exist in state i. -1 is the state before the first commit that is
// undone.
func (d *document) absent(i int32) bool {
	if i < 0 {
		return d.gone
	}
	return d.nodes[i].deleted
}

// version returns the position of the log entry that made state i. -1 is the state before the first commit that is
// undone. The position is 0 if no entry made that state.
func (d *document) version(i int32) wal.LSN {
	if i < 0 {
		return d.base
	}
	return d.nodes[i].lsn
}

// keptKey identifies a copy of a version in the log: by the key of the document and the position of the version.
type keptKey struct {
	key string
	at  wal.LSN
}

// scan reads the selected commits and all commits after the first of them. It returns the documents that the selected
// commits changed, by key.
func (u *Undoer) scan(ctx context.Context, s *selection, p *Plan, to wal.LSN) (map[string]*document, error) {
	docs, scopes := map[string]*document{}, map[string]bool{}
	kept := map[keptKey]wal.LSN{} // copies that precede the entry that replaces them
	err := u.batches(ctx, s.from, to, func(b *batch, err error) bool {
		if err != nil {
			p.Unread = append(p.Unread, err)
			return true
		}
		chosen, changes := b.at < s.Before && s.has(b), false
		for i := range b.entries {
			e := &b.entries[i]
			switch {
			case e.key[0] == record.Kept:
				kept[keptKey{e.key[1:], e.previous}] = e.lsn
				continue
			case e.key[0] == record.Working:
				if chosen && e.cause != wal.CauseUpkeep && !scopes[e.key[1:]] {
					scopes[e.key[1:]] = true
					p.Scopes = append(p.Scopes, e.key[1:])
				}
				continue
			case u.engine.Kinds().Of(e.key) == nil:
				continue
			}
			upkeep := b.upkeep || e.cause == wal.CauseUpkeep
			in := chosen && !upkeep
			d := docs[e.key]
			if d == nil {
				if !in {
					continue
				}
				d = &document{base: e.previous, gone: e.created || e.previous == 0, cur: -1,
					kept: kept[keptKey{e.key, e.previous}]}
				docs[e.key] = d
			}
			d.add(e, b.writer, in, upkeep)
			changes = changes || in
		}
		if chosen && changes {
			if p.Commits++; p.First == 0 {
				p.First = b.at
			}
			p.Last = b.at
		}
		for i := range b.entries {
			if b.entries[i].key[0] != record.Kept {
				clear(kept)
				break
			}
		}
		return true
	})
	return docs, err
}
