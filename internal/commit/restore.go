package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/wal"
)

// Restored is a document that a Restoration restores to an earlier version, or deletes because it did not exist at that
// time.
type Restored struct {
	Kind     *engine.Kind
	ID       string
	Was      engine.Version // the version that is replaced or deleted; LSN 0: the document does not exist now
	Restores wal.LSN        // the version that is restored, or the deletion that is repeated; 0: there was neither
	Delete   bool           // delete the document; otherwise restore Doc and Line
	Doc      []byte         // the exact bytes of the version that is restored
	Line     index.Entry    // index line of the version that is restored
	// Since is the position of the first change that the undo reverts. It matters for assemblies: after Since, other
	// commits may have changed their members.
	Since wal.LSN
}

// RefusedError reports that a Restoration cannot restore or delete one of its documents. Err is the reason.
type RefusedError struct {
	Index int // index of the document, in the order of Restoration.Add; -1: the document that Add refuses
	Err   error
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// A Restoration restores documents as they were, in one commit: the exact bytes, including times and members that this
// program does not know. Two things are not restored: an expiry in the past, with which the memory would be deleted at
// once, and an embedding by a previous model of the store.
//
// The rules of other commits apply. An assembly never names a deleted memory, and its composite is that of its
// members: if an assembly would change along with a memory, and is not restored itself, the memory is refused and the
// assembly is not changed. A commit that would exceed a limit is refused; a Restoration evicts no memories.
type Restoration struct {
	cm       *Committer
	docs     []*Restored
	contents []engine.Parsed
	entries  []wal.Entry
	size     uint64
	limit    uint64
	model    index.Model
	changes  map[string]MemoryChange // changes of memories, by id
	vectors  bool
	effects  Effects
	demands  []wal.Precondition // preconditions, one for each document
}

// Effects are the changes that commits make to the number and bytes of the memories of each session. The key
// "" is for memories without a session.
type Effects map[string]counts.Sum

// Change adds delta, in which numbers may be negative, to the effects on a session.
func (e Effects) Change(session string, delta counts.Sum) { e[session] = e[session].Plus(delta) }

// demands returns the demands of the effects in e and other together, to be compared with the limits l: one for each
// session that grows, and last the demand of the whole store, if the store grows. It does not change e.
func (e Effects) demands(other Effects, l *counts.Limits) (list []*counts.Demand) {
	all, in := counts.Sum{}, maps.Clone(e)
	for s, sum := range other {
		in.Change(s, sum)
	}
	for _, s := range slices.Sorted(maps.Keys(in)) {
		all = all.Plus(in[s])
		if d := (&counts.Demand{Session: s, Limit: l.Session, Add: in[s]}); s != "" && d.Grows() {
			list = append(list, d)
		}
	}
	if d := (&counts.Demand{Limit: l.All, Add: all}); d.Grows() {
		list = append(list, d)
	}
	return list
}

// Restoration returns an empty Restoration of at most limit bytes of log; 0: the limit of a commit.
func (cm *Committer) Restoration(limit uint64) *Restoration {
	if most := cm.engine.Log().Limit(); limit == 0 || limit > most {
		limit = most
	}
	return &Restoration{cm: cm, limit: limit, model: cm.vectors.Model(), changes: map[string]MemoryChange{},
		effects: Effects{}}
}

// Len returns the number of documents that were added.
func (r *Restoration) Len() int { return len(r.docs) }

// Add adds a document. It returns false, and adds nothing, if the commit has no room for the document besides those
// that were added before. For a document that cannot be restored the error is a *RefusedError.
func (r *Restoration) Add(d *Restored) (bool, error) {
	cm, key := r.cm, d.Kind.Key(d.ID)
	e := wal.Entry{Key: key, Restores: d.Restores}
	demand := wal.Precondition{Key: key, LSN: d.Was.LSN}
	var p engine.Parsed
	doc := d.Doc
	if d.Delete {
		e.Kind, e.Delete = record.KindDelete, true
		e.Value, e.Inflated = cm.engine.Codec().Encode(nil, &record.Record{Previous: d.Was.LSN})
	} else {
		var err error
		if p, doc, err = r.adapted(d); err != nil {
			return false, &RefusedError{-1, err}
		}
		line, err := p.Line(doc, 0)
		if err != nil {
			return false, &RefusedError{-1, err}
		}
		previous := d.Was.LSN
		if previous == 0 {
			previous = cm.engine.State().Deletion(d.Kind.Letter, d.ID)
			demand.Chained, demand.Deletion = true, previous
		}
		e.Kind = record.KindPut
		e.Value, e.Inflated = cm.engine.Codec().Encode(nil,
			&record.Record{Previous: previous, Created: d.Was.LSN == 0, Line: line, Vector: p.Vector, Doc: doc})
	}
	one := frames([]wal.Entry{e})
	if len(r.docs) > 0 && r.size+one > r.limit {
		return false, nil
	}
	if most := cm.engine.Log().Limit(); one > most || uint64(e.Inflated) > most {
		return false, &RefusedError{-1, fmt.Errorf("%w: the document takes %d bytes, the limit of a commit in this log is %d",
			errs.ErrTooLarge, max(one, uint64(e.Inflated)), most)}
	}
	r.docs, r.contents = append(r.docs, d), append(r.contents, p)
	r.entries, r.demands = append(r.entries, e), append(r.demands, demand)
	r.size += one
	r.vectors = r.vectors || len(p.Vector) > 0
	if d.Kind == cm.engine.Kinds().Memories {
		r.changes[d.ID] = MemoryChange{Deleted: d.Delete, Vector: p.Vector}
		if d.Was.LSN != 0 {
			r.effects.Change(d.Was.Line.SessionID, counts.Sum{N: -1, Bytes: -d.Was.Line.Size})
		}
		if !d.Delete {
			r.effects.Change(p.Memory.Session(), counts.Sum{N: 1, Bytes: int64(len(doc))})
		}
	}
	return true, nil
}

// adapted returns the document d.Doc, parsed and as bytes, without what a Restoration does not restore: an expiry in
// the past, and an embedding by a previous model. An assembly with a composite embedding by a previous model is an
// error.
func (r *Restoration) adapted(d *Restored) (engine.Parsed, []byte, error) {
	p, err := d.Kind.Parse(d.Doc, d.ID)
	if err != nil {
		return p, nil, err
	}
	p.Date(d.Line.CreatedAt, d.Line.UpdatedAt)
	older := len(p.Vector) > 0 && r.older(d)
	if p.Memory == nil {
		if older {
			err = fmt.Errorf("%w: the composite embedding is by a previous model of the store", errs.ErrInvalid)
		}
		return p, d.Doc, err
	}
	if !older && !p.Memory.Expired(r.cm.engine.Env().Clock()) {
		return p, d.Doc, nil
	}
	m := p.Memory
	if m.Expired(r.cm.engine.Env().Clock()) {
		m.ExpiresAt = time.Time{}
	}
	if older {
		SetEmbedding(m, nil)
	}
	doc, err := m.Encode(kind.Stored)
	if err != nil {
		return p, nil, err
	}
	again, err := d.Kind.Parse(doc, d.ID)
	if err != nil {
		return p, nil, err
	}
	again.Date(d.Line.CreatedAt, d.Line.UpdatedAt)
	return again, doc, nil
}

// older reports whether the vector in the version to be restored was made by a previous embedding model of the
// store.
func (r *Restoration) older(d *Restored) bool {
	m := r.model
	m.Done = false // Done means that none is left; this one is an exception
	return m.Older(d.Line.Version, d.Line.VectorNumber())
}

// RestoreOptions are options of Restoration.Commit.
type RestoreOptions struct {
	Cause uint8 // cause of the entries, of package wal
	// Later reports whether an assembly that changes because of a memory of this commit is restored by a later
	// commit.
	Later func(assembly string) bool
	// Rest has the numbers and bytes of memories that later commits of the same undo will add; nil: none. Limits apply
	// to the sum of this commit and the later ones.
	Rest Effects
}

// Effects returns the changes that the commit makes to the number and bytes of memories, by session.
func (r *Restoration) Effects() Effects { return r.effects }

// Commit commits the documents that were added. The error is a *RefusedError for a document that cannot be restored,
// and errs.ErrConflict if a document was changed since it was read. Commit returns the position of the first
// document's entry.
func (r *Restoration) Commit(ctx context.Context, o RestoreOptions) (wal.LSN, error) {
	cm := r.cm
	if err := cm.pace.Pressure(ctx, func() int64 { return int64(r.size) }); err != nil {
		return 0, err
	}
	b := &wal.Batch{Entries: slices.Clone(r.entries), Preconditions: slices.Clone(r.demands), Frees: true}
	for i, d := range r.docs {
		b.Entries[i].Cause = o.Cause
		b.Frees = b.Frees && d.Delete
	}
	for _, step := range []func(context.Context, *RestoreOptions, *wal.Batch) error{r.fitVectors, r.goAlong,
		r.keepLimits} {
		if err := step(ctx, &o, b); err != nil {
			return 0, err
		}
	}
	ends, err := r.places(ctx, b)
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	if err != nil {
		return 0, err
	}
	kept, err := cm.keep(ctx, nil, b.Entries)
	if err != nil {
		return 0, err
	}
	if len(kept) > 0 {
		b.Entries, b.Frees = append(kept, b.Entries...), false
	}
	if _, err = cm.engine.Append(ctx, b); err != nil {
		return 0, cm.engine.Log().Folder().Explain(err)
	}
	cm.engine.Commits().Add(1)
	cm.pace.Wake(len(b.Entries))
	cm.pace.BeatInline()
	cm.pace.RoundInline(ctx)
	return b.Entries[len(kept)].LSN, nil
}

// refused returns the RefusedError for one of the documents of the Restoration.
func (r *Restoration) refused(k *engine.Kind, id string, err error) error {
	return &RefusedError{slices.IndexFunc(r.docs, func(d *Restored) bool { return d.Kind == k && d.ID == id }), err}
}

// fitVectors adds preconditions to the batch under which the documents' vectors are valid: the store's model
// and dimension have not changed.
func (r *Restoration) fitVectors(ctx context.Context, _ *RestoreOptions, b *wal.Batch) error {
	if !r.vectors {
		return nil
	}
	_, decided, err := r.cm.vectors.Dimension(ctx)
	if err != nil {
		return err
	}
	b.Preconditions = append(b.Preconditions, wal.Precondition{Key: state.ModelKey, LSN: r.model.LSN})
	if decided != (wal.Precondition{}) {
		b.Preconditions = append(b.Preconditions, decided)
	}
	return nil
}

// goAlong adds to the batch b what keeps assemblies consistent with the memories that the commit restores or deletes:
// preconditions, and the changes of assemblies that a later commit restores (RestoreOptions.Later). If any other
// assembly would have to change, the error is a *RefusedError for the memory. goAlong also checks the members of the
// assemblies that this commit restores.
func (r *Restoration) goAlong(ctx context.Context, o *RestoreOptions, b *wal.Batch) error {
	cm := r.cm
	assemblies := cm.engine.Kinds().Assemblies
	named := slices.ContainsFunc(r.docs, func(d *Restored) bool { return d.Kind == assemblies })
	hint := cm.engine.State().MembersHint()
	switch {
	case named:
	case len(r.changes) == 0:
		return nil
	case !cm.engine.State().Grouped():
		b.Preconditions = append(b.Preconditions, wal.Precondition{Key: allMembers, Hint: hint})
		return nil
	}
	j := cm.Joint(ctx)
	j.memories = r.changes
	for _, id := range slices.Sorted(maps.Keys(r.changes)) {
		if err := j.changes(id, r.changes[id]); err != nil {
			return err
		}
	}
	for i, d := range r.docs {
		if d.Kind != assemblies {
			continue
		}
		delete(j.touched, d.ID)
		if d.Delete {
			continue
		}
		if err := r.members(ctx, j, i); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(j.touched)) {
		if t := j.touched[id]; o.Later == nil || !o.Later(id) {
			return r.refused(cm.engine.Kinds().Memories, t.of, &RestsError{Assembly: id})
		}
	}
	if err := j.prepareTouched(); err != nil {
		return err
	}
	for i := range j.out.entries {
		j.out.entries[i].Cause = wal.CauseUpkeep // the commit that restores the assembly follows
	}
	b.Preconditions = append(append(b.Preconditions, j.out.preconditions...), j.Modelled())
	b.Entries = append(b.Entries, j.out.entries...)
	return nil
}

// RestsError reports that a memory cannot be restored because an assembly that contains it would have to
// change and is not restored.
type RestsError struct{ Assembly string }

func (e *RestsError) Error() string {
	return fmt.Sprintf("assembly %s contains the memory, and would change along with the memory",
		human.Quote(e.Assembly))
}

// members returns an error unless all members of the i-th document, an assembly, exist after the commit, and the
// composite embedding of the restored version still matches the members.
func (r *Restoration) members(ctx context.Context, j *Joint, i int) error {
	d, p := r.docs[i], &r.contents[i]
	moved := ""
	var missing []string
	for _, id := range p.Members {
		if c, ok := r.changes[id]; ok {
			if c.Deleted {
				missing = append(missing, id)
			}
			at := slices.IndexFunc(r.docs, func(o *Restored) bool {
				return o.ID == id && o.Kind == j.st.engine.Kinds().Memories
			})
			if r.docs[at].Restores >= d.Since {
				moved = id
			}
			continue
		}
		hint := j.st.engine.State().Hint()
		v, err := j.find(id)
		gone := errors.Is(err, errs.ErrNotFound)
		if err != nil && !gone {
			return fmt.Errorf("member %s: %w", human.Quote(id), err)
		}
		if gone || v.Expired(j.st.engine.Env().Clock()) {
			missing = append(missing, id)
			continue
		}
		if v.LSN >= d.Since && !r.putBack(ctx, v.LSN, d.Since) {
			moved = id
		}
		j.out.preconditions = append(j.out.preconditions, wal.Precondition{Key: engine.MemoryKey(id), LSN: v.LSN, Hint: hint})
	}
	if len(missing) > 0 {
		return &RefusedError{i, &errs.MissingMembersError{Assembly: d.ID, IDs: missing}}
	}
	if moved == "" {
		return nil
	}
	a := p.Group.Clone()
	if err := j.Compose(a, nil); err != nil {
		return err
	}
	if !slices.Equal(a.CompositeEmbedding, p.Group.CompositeEmbedding) {
		return &RefusedError{i,
			fmt.Errorf("the composite embedding no longer matches the members: memory %s has changed",
				human.Quote(moved))}
	}
	return nil
}

// putBack reports whether the version at position pos was written by an undo that restored a version older than
// the position since.
func (r *Restoration) putBack(ctx context.Context, pos, since wal.LSN) bool {
	e, err := r.cm.engine.Log().ReadAt(ctx, pos)
	return err == nil && (e.Cause == wal.CauseUndo || e.Cause == wal.CauseUndoing) && e.Restores != 0 && e.Restores < since
}

// keepLimits returns an error if the commit would exceed the limits of the store. It evicts nothing: an undo deletes
// only documents that the undone commits have created.
func (r *Restoration) keepLimits(ctx context.Context, o *RestoreOptions, b *wal.Batch) error {
	cm := r.cm
	l := counts.LimitsOf(cm.engine.Settings().Now())
	if l == nil {
		return nil
	}
	list := r.effects.demands(o.Rest, l)
	if len(list) == 0 {
		return nil
	}
	cm.counts.Watch()
	s, err := cm.look(ctx, list)
	if err != nil {
		return err
	}
	for i, d := range list {
		if d.Over() != (counts.Sum{}) {
			return d.Refusal()
		}
		if s.at < cm.counts.PutsFrom().Load() { // see Committer.keepLimits
			b.Preconditions = append(b.Preconditions, wal.Precondition{LSN: s.at})
			continue
		}
		b.Preconditions = append(b.Preconditions, d.Within(s.before[i])...)
	}
	return nil
}

// places adds to the batch the preconditions that no document exists whose path excludes the path of a document that
// the commit creates. It does so for kinds whose documents are in folders. The caller must call each function in ends,
// to release what the preconditions hold.
func (r *Restoration) places(ctx context.Context, b *wal.Batch) (ends []func(), err error) {
	for _, k := range r.cm.engine.Kinds().All {
		if !k.Tree() {
			continue
		}
		var ids []string
		deleted := map[string]bool{}
		for _, d := range r.docs {
			switch {
			case d.Kind != k:
			case d.Delete:
				deleted[d.ID] = true
			case d.Was.LSN == 0:
				ids = append(ids, d.ID)
			}
		}
		places, fails, err := r.cm.placesBut(ctx, k, ids, deleted)
		ends = append(ends, places.End)
		if err != nil {
			return ends, err
		}
		for i, err := range fails {
			if err != nil {
				return ends, r.refused(k, ids[i], err)
			}
		}
		if demand := places.precondition(); demand != (wal.Precondition{}) {
			b.Preconditions = append(b.Preconditions, demand)
		}
	}
	return ends, nil
}
