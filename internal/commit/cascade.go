package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/wal"
)

// along has the entries about assemblies that a commit writes besides its own operations. If a commit deletes a
// memory, its batch also removes the memory from the assemblies that contain it. If a commit changes the embedding of
// a memory, its batch also updates what these assemblies derive from the embedding. So an assembly never names a
// deleted memory, and its composite embedding is that of its members, wherever a crash occurs.
//
// A precondition on state.MembersKey ensures that no other commit adds the memory to an assembly after this commit has
// searched for the assemblies that contain the memory: see package state.
type along struct {
	preconditions []wal.Precondition
	entries       []wal.Entry
	of            string // id of a memory whose change makes assemblies change; used in messages
}

// explain returns err. If err means that the batch is too large, explain adds the number of assemblies that the batch
// also rewrites.
func (a *along) explain(err error) error {
	if len(a.entries) == 0 || !errors.Is(err, errs.ErrBatchTooLarge) {
		return err
	}
	return fmt.Errorf("%w; the batch also rewrites %d assemblies (%s is in some of them): first remove the memories "+
		"from some of these assemblies", err, len(a.entries), human.Quote(a.of))
}

// Joint prepares the assemblies that a commit writes: the ones that its operations name, and the ones whose members the
// commit changes.
type Joint struct {
	st       *Committer
	ctx      context.Context
	memories map[string]MemoryChange
	touched  map[string]*touch
	out      along
	// Load reads a document: it is Engine.Load, or a function that the holder of flush.lock may call.
	Load func(ctx context.Context, k *engine.Kind, id string) (engine.Version, error)
	// Held proves that the caller holds flush.lock; nil if the caller does not hold it. A caller that holds the lock
	// must not search for the dimension of vectors.
	Held  *wal.Held
	model index.Model
}

// MemoryChange is the change that a commit makes to a memory.
type MemoryChange struct {
	op      int // index of the operation on the memory in the batch
	Deleted bool
	Vector  []float32
}

// touch describes why an assembly changes: the changes of its members.
type touch struct {
	gone  []string // ids of the members that are deleted
	moved bool     // the embedding of a member changes
	of    string   // id of one of the members that cause the change
}

// Joint returns a new Joint.
func (cm *Committer) Joint(ctx context.Context) *Joint {
	return &Joint{st: cm, ctx: ctx, memories: map[string]MemoryChange{}, touched: map[string]*touch{},
		Load: cm.engine.Load, model: cm.vectors.Model()}
}

// prepareAlong prepares the assemblies that a batch changes, after the memories of the batch are prepared.
func (cm *Committer) prepareAlong(ctx context.Context, w *work, ops []Op) error {
	hint := cm.engine.State().MembersHint()
	grouped := cm.engine.State().Grouped()
	known, named := false, false
	for i := range ops {
		if w.prepared[i].wanted {
			named = named || ops[i].kind == cm.engine.Kinds().Assemblies
			known = known || ops[i].Written && ops[i].ID != "" // a memory that gets its id now is in no assembly
		}
	}
	switch {
	case named:
	case !known:
		return nil
	case !grouped:
		w.along.preconditions = append(w.along.preconditions, wal.Precondition{Key: allMembers, Hint: hint})
		return nil
	}
	j := cm.Joint(ctx)
	for i := range ops {
		o := &ops[i]
		if p := &w.prepared[i]; p.wanted && p.err == nil && o.kind == cm.engine.Kinds().Memories && o.Written {
			c := MemoryChange{op: i, Deleted: o.Memory == nil}
			id := o.ID
			if !c.Deleted {
				id, c.Vector = o.Memory.ID, o.Memory.Embedding
			}
			j.memories[id] = c
			if o.ID == "" {
				continue
			}
			if err := j.changes(id, c); err != nil {
				return err
			}
		}
	}
	for i := range ops {
		if p := &w.prepared[i]; p.wanted && ops[i].kind == cm.engine.Kinds().Assemblies {
			p.err = j.named(&ops[i], i, p)
			delete(j.touched, ops[i].ID)
		}
	}
	if err := j.prepareTouched(); err != nil {
		return err
	}
	j.out.preconditions = append(j.out.preconditions, j.Modelled())
	w.along = j.out
	return nil
}

// goAlong adds to the batch b the assemblies that change because b changes or deletes the given memories, and the
// preconditions for them. It sets b.Frees to whether b deletes all these memories. held proves that the caller holds
// flush.lock.
func (cm *Committer) goAlong(ctx context.Context, held *wal.Held, memories map[string]MemoryChange,
	b *wal.Batch) error {
	b.Frees = true
	for _, c := range memories {
		b.Frees = b.Frees && c.Deleted
	}
	hint := cm.engine.State().MembersHint()
	if !cm.engine.State().Grouped() {
		b.Preconditions = append(b.Preconditions, wal.Precondition{Key: allMembers, Hint: hint})
		return nil
	}
	j := cm.Joint(ctx)
	j.Load, j.Held = cm.engine.Settled, held
	j.memories = memories
	for _, id := range slices.Sorted(maps.Keys(memories)) {
		if err := j.changes(id, memories[id]); err != nil {
			return err
		}
	}
	if err := j.prepareTouched(); err != nil {
		return err
	}
	b.Preconditions = append(append(b.Preconditions, j.out.preconditions...), j.Modelled())
	b.Entries = append(b.Entries, j.out.entries...)
	return nil
}

// Modelled returns the precondition that the store's embedding model has not changed since the composites were
// computed from the vectors of that model.
func (j *Joint) Modelled() wal.Precondition {
	return wal.Precondition{Key: state.ModelKey, LSN: j.model.LSN}
}

// allMembers is a key in the log's preconditions whose version is 0 as long as there is no assembly.
const allMembers = string(rune(state.Members))

// changes records the assemblies that change if a memory changes as described by c.
func (j *Joint) changes(id string, c MemoryChange) error {
	cm := j.st
	hint := cm.engine.State().MembersHint()
	assemblies, newest, err := cm.engine.Containing(id)
	if err != nil {
		return err
	}
	j.out.preconditions = append(j.out.preconditions, wal.Precondition{Key: state.MembersKey(id), LSN: newest, Hint: hint})
	if len(assemblies) == 0 {
		return nil
	}
	moved := false
	if !c.Deleted {
		was, known, err := j.stored(id)
		if err != nil {
			return err
		}
		moved = !slices.Equal(was, c.Vector)
		// The vector that counts for the memory so far may be another one, or may exist although the document has none.
		counts, older, err := cm.vectors.NewestVector(j.ctx, &j.model, id)
		if err != nil && !errors.Is(err, vectors.ErrBehind) {
			return err
		}
		moved = moved || err != nil || older && !slices.Equal(counts, c.Vector)
		if (known || older) && !moved {
			return nil
		}
	}
	for _, a := range assemblies {
		t := j.touched[a]
		if t == nil {
			t = &touch{of: id}
			j.touched[a] = t
		}
		t.moved = t.moved || moved
		if c.Deleted {
			t.gone = append(t.gone, id)
		}
	}
	return nil
}

// prepareTouched prepares the assemblies whose members the batch changes or deletes, in the order of their ids. It
// omits the assemblies that the batch names. An assembly that cannot be read is left unchanged: the assembly must
// not prevent writing the rest, and verify reports the damage.
func (j *Joint) prepareTouched() error {
	for _, id := range slices.Sorted(maps.Keys(j.touched)) {
		t := j.touched[id]
		old, a, err := j.Assembly(id)
		if errors.Is(err, errs.ErrNotFound) {
			continue // deleted since
		}
		if errors.Is(err, errs.ErrCorrupt) {
			j.st.engine.Env().Logger.Warn("an assembly cannot be read and is left unchanged: run memctl verify", "id", id, "err",
				err)
			continue
		}
		if err != nil {
			return fmt.Errorf("assembly %s, which contains memory %s: %w", human.Quote(id), human.Quote(t.of), err)
		}
		was := a.Clone()
		removed := a.Remove(t.gone...)
		if err := j.Compose(a, was); err != nil {
			return fmt.Errorf("assembly %s, which contains memory %s: %w", human.Quote(id), human.Quote(t.of), err)
		}
		p := wal.Precondition{Key: j.st.engine.Kinds().Assemblies.Key(id), LSN: old.LSN}
		j.out.preconditions = append(j.out.preconditions, p)
		// An assembly with a changed member is written even if its composite stays the same: a process that is
		// composing it at the same time may have read some members before the change and some after, and only the new
		// version tells it so.
		if removed == 0 && !t.moved && slices.Equal(a.CompositeEmbedding, was.CompositeEmbedding) &&
			slices.Equal(a.HyperbolicEmbedding, was.HyperbolicEmbedding) {
			continue
		}
		entry, err := j.Entry(a, &old, old.LSN)
		if err != nil {
			return fmt.Errorf("assembly %s, which contains memory %s: %w", human.Quote(id), human.Quote(t.of), err)
		}
		j.out.entries, j.out.of = append(j.out.entries, entry), t.of
	}
	return nil
}

// Assembly returns the newest version of an assembly, and the decoded assembly. If the version cannot be decoded, the
// error matches errs.ErrCorrupt.
func (j *Joint) Assembly(id string) (engine.Version, *assembly.Assembly, error) {
	v, err := j.Load(j.ctx, j.st.engine.Kinds().Assemblies, id)
	if err != nil {
		return v, nil, err
	}
	a, err := j.st.engine.DecodeAssembly(id, v)
	if err != nil {
		return v, nil, errors.Join(err, errs.ErrCorrupt)
	}
	return v, &a, nil
}

// named prepares the operation o on an assembly, and stores the result in p. o is the i-th operation of the batch.
func (j *Joint) named(o *Op, i int, p *prepared) error {
	cm := j.st
	hint := cm.engine.State().Hint()
	old, was, err := engine.Version{}, (*assembly.Assembly)(nil), error(errs.ErrNotFound)
	if o.ID != "" {
		old, was, err = j.Assembly(o.ID)
		if errors.Is(err, errs.ErrCorrupt) && cm.engine.Log().Damage() == nil { // as with a memory: see before
			old, err = cm.engine.Find(j.ctx, cm.engine.Kinds().Assemblies, o.ID, false)
		}
	}
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	found := err == nil
	if err := o.Conds.Holds(o.ID, old.LSN, old.Line.UpdatedAt); err != nil {
		return err
	}
	p.precondition = wal.Precondition{Key: cm.engine.Kinds().Assemblies.Key(o.ID), LSN: old.LSN, Hint: hint}
	if o.Assembly == nil {
		if !found {
			if o.MustExist {
				return errs.ErrNotFound
			}
			return nil
		}
		value, inflated := cm.engine.Codec().Encode(nil, &record.Record{Previous: old.LSN})
		p.entry = wal.Entry{Key: p.precondition.Key, Kind: record.KindDelete, Delete: true, Value: value, Inflated: inflated}
		o.Written = true
		return nil
	}
	a := o.Assembly.Clone()
	if t := j.touched[o.ID]; t != nil {
		j.out.of = t.of
	}
	a.Remove(j.deletedAfter(i)...)
	if err := cm.purged(o, cm.engine.Kinds().Assemblies, a.ID, engine.TextOf(&engine.Parsed{Group: a}, nil)); err != nil {
		return err
	}
	if err := j.check(a, was, o.Conds.Missing); err != nil {
		return err
	}
	if err := j.Compose(a, was); err != nil {
		return err
	}
	if !o.Conds.Misfit {
		if err := j.fits(a, o.Assembly, was); err != nil {
			return err
		}
	}
	previous := old.LSN
	if !found {
		if a.ID != "" {
			previous = cm.engine.State().Deletion(kind.Assemblies.Letter, a.ID)
		}
		p.precondition.Chained, p.precondition.Deletion = true, previous
	}
	if p.entry, err = j.Entry(a, &old, previous); err != nil {
		return err
	}
	p.precondition.Key, p.assembly = p.entry.Key, a
	o.Written = true
	return nil
}

// deletedAfter returns the memories that the batch deletes after its i-th operation. An assembly that is written before
// the deletion loses these members; an assembly that is written after the deletion must not contain them.
func (j *Joint) deletedAfter(i int) []string {
	var ids []string
	for id, c := range j.memories {
		if c.Deleted && c.op > i {
			ids = append(ids, id)
		}
	}
	return ids
}

// check adds preconditions for the new members of an assembly a: that they still exist as they were read, or, if
// missing members are allowed, that they still do not exist. prev is the previous version of the assembly, or nil.
// The members of prev need no precondition: a commit that deletes such a member also writes this assembly. If
// members are missing and missing members are not allowed, the error is a *errs.MissingMembersError.
func (j *Joint) check(a, prev *assembly.Assembly, allowed bool) error {
	if err := assembly.CheckMembers(a.MemoryIDs, j.st.engine.Settings().Now().AssemblyLimits()); err != nil {
		return err
	}
	had := map[string]bool{}
	if prev != nil {
		for _, id := range prev.MemoryIDs {
			had[id] = true
		}
	}
	var missing []string
	for _, id := range a.MemoryIDs {
		if c, ok := j.memories[id]; ok {
			if c.Deleted {
				missing = append(missing, id)
			}
			continue // the batch writes it
		}
		if had[id] {
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
		}
		j.out.preconditions = append(j.out.preconditions, wal.Precondition{Key: engine.MemoryKey(id), LSN: v.LSN, Hint: hint})
		had[id] = true
	}
	if len(missing) > 0 && !allowed {
		return &errs.MissingMembersError{Assembly: a.ID, IDs: missing}
	}
	return nil
}

// find returns the newest version of a memory, without its content.
func (j *Joint) find(id string) (engine.Version, error) {
	return j.st.engine.Find(j.ctx, j.st.engine.Kinds().Memories, id, false)
}

// Entry returns the log entry that writes the assembly a in place of the version old. previous is the position
// of the newest entry of its key, which may be a deletion.
func (j *Joint) Entry(a *assembly.Assembly, old *engine.Version, previous wal.LSN) (wal.Entry, error) {
	cm := j.st
	var prev *assembly.Previous
	if old.LSN != 0 {
		prev = &assembly.Previous{CreatedAt: old.Line.CreatedAt, Document: old.Doc, VectorID: old.Line.VectorNumber()}
	}
	misfit, err := j.misfit(a)
	if err != nil {
		return wal.Entry{}, err
	}
	doc, line, err := assembly.Prepare(a, prev, cm.engine.Env().Clock(),
		assembly.PrepareOptions{Limits: cm.engine.Settings().Now().AssemblyLimits(), Rand: cm.engine.Env().System.Rand,
			Misfit: misfit})
	if err != nil {
		return wal.Entry{}, err
	}
	value, inflated := cm.engine.Codec().Encode(nil,
		&record.Record{Previous: previous, Created: old.LSN == 0, Line: line, Vector: a.CompositeEmbedding, Doc: doc})
	return wal.Entry{Key: cm.engine.Kinds().Assemblies.Key(a.ID), Kind: record.KindPut, Value: value, Inflated: inflated},
		nil
}
