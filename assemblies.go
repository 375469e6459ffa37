package varve

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
)

// Assembly is a group of memories; see package assembly.
type Assembly = assembly.Assembly

// Assemblies are the groups of memories of a store. They use the same log, files and index as memories: Put, Get,
// conditions and edits by hand work as they do for memories.
//
// An assembly and its members always agree, because the commit that changes one also changes the other. A commit that
// deletes a memory also removes this memory from all assemblies. A commit that changes the embedding of a memory also
// changes the CompositeEmbedding of the assemblies that contain this memory. A commit that changes the members of an
// assembly also changes the CompositeEmbedding of this assembly. The store computes this composite; a composite set by
// a caller is used only if no member has an embedding. Readers do not see an expired member; when the expired memory
// is deleted, it is removed from the assembly.
type Assemblies struct{ st *Store }

// Assemblies returns the assemblies of the store.
func (st *Store) Assemblies() Assemblies { return Assemblies{st} }

// Put stores an assembly and returns it as stored, with its id, times, composite and Version. Members that the previous
// version did not have must exist, otherwise the error is a *MissingMembersError; AllowMissing permits them to be
// missing. See Store.Put.
func (asm Assemblies) Put(ctx context.Context, a Assembly, options ...PutOption) (Assembly, error) {
	st := asm.st
	if err := st.inner.Engine.BeginUse(); err != nil {
		return Assembly{}, err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return Assembly{}, err
	}
	a = *a.Clone()
	ops := []commit.Op{{Group: true, ID: a.ID, Assembly: &a, Conds: conditionsOf(options)}}
	if err := st.inner.Committer.Commit(ctx, ops, nil, 0); err != nil {
		return Assembly{}, err
	}
	return *a.Clone(), nil
}

// Get returns an assembly. If no assembly has this id, the error matches ErrNotFound.
func (asm Assemblies) Get(ctx context.Context, id string) (Assembly, error) {
	v, err := asm.st.inner.Engine.Get(ctx, asm.st.inner.Engine.Kinds().Assemblies, id)
	if err != nil {
		return Assembly{}, err
	}
	return asm.st.inner.Engine.DecodeAssembly(id, v)
}

// GetRaw returns the exact bytes of an assembly's file. If the file does not have the newest version yet, GetRaw
// returns the bytes that the next flush will write.
func (asm Assemblies) GetRaw(ctx context.Context, id string) ([]byte, error) {
	v, err := asm.st.inner.Engine.Get(ctx, asm.st.inner.Engine.Kinds().Assemblies, id)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(v.Doc), nil
}

// Update changes one assembly with the function f and returns the resulting assembly. If another writer changes the
// assembly meanwhile, f runs again. See Store.Update.
func (asm Assemblies) Update(ctx context.Context, id string, f func(a *Assembly) error,
	options ...PutOption) (Assembly, error) {
	var result *Assembly
	err := asm.st.Transact(ctx, func(tx *Tx) error {
		a, err := tx.Assembly(id)
		if err != nil {
			return err
		}
		result = &a
		changed := *a.Clone()
		if err := f(&changed); err != nil {
			return err
		}
		if changed.ID != id {
			return &errs.FieldError{Field: "assembly_id", Value: human.Quote(changed.ID),
				Err: fmt.Errorf("%w: Update cannot change the id of assembly %s", errs.ErrInvalid, human.Quote(id))}
		}
		result = &changed
		tx.tx.PutAssemblyAt(&changed, conditionsOf(options))
		return nil
	})
	if err != nil {
		return Assembly{}, err
	}
	return *result.Clone(), nil
}

// Delete deletes an assembly, and keeps its members. If no assembly has this id, the error matches ErrNotFound.
func (asm Assemblies) Delete(ctx context.Context, id string, conds ...Cond) error {
	st := asm.st
	if err := st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return err
	}
	return st.inner.Committer.Commit(ctx, []commit.Op{{Group: true, ID: id, Conds: conditionsOf(conds),
		MustExist: true}}, nil, 0)
}

// Add appends memories to the members of an assembly. Memories that are members already keep their place. The memories
// must exist unless AllowMissing is given.
func (asm Assemblies) Add(ctx context.Context, id string, memories []string, options ...PutOption) (Assembly, error) {
	return asm.change(ctx, id, options, func(a *Assembly) int { return a.Add(memories...) })
}

// Remove removes memories from the members of an assembly. Ids that are not members are ignored.
func (asm Assemblies) Remove(ctx context.Context, id string, memories []string,
	options ...PutOption) (Assembly, error) {
	return asm.change(ctx, id, options, func(a *Assembly) int { return a.Remove(memories...) })
}

// change updates an assembly with f, which edits the assembly and returns the number of changes it made. If f returns 0
// and options contains no condition, nothing is written.
func (asm Assemblies) change(ctx context.Context, id string, options []PutOption,
	f func(*Assembly) int) (Assembly, error) {
	c := conditionsOf(options)
	return asm.Update(ctx, id, func(a *Assembly) error {
		if f(a) == 0 && !c.Any() {
			return ErrSkip
		}
		return nil
	}, options...)
}

// Activate adds boost to the current activation level of an assembly and counts the activation. The level stays in the
// range 0 to 1. It decays by half in each activation_half_life of config.json (default: a day). The decay needs no
// write: Level computes the current level.
func (asm Assemblies) Activate(ctx context.Context, id string, boost float64) (Assembly, error) {
	return asm.Update(ctx, id, func(a *Assembly) error {
		return a.Activate(asm.st.inner.Engine.Env().Clock(), boost, asm.st.inner.Engine.Settings().Now().HalfLife())
	})
}

// Level returns the current activation level of an assembly, in the range 0 to 1.
func (asm Assemblies) Level(a *Assembly) float64 {
	return a.ActivationAt(asm.st.inner.Engine.Env().Clock(), asm.st.inner.Engine.Settings().Now().HalfLife())
}

// Merge merges other assemblies, whose ids are in from, into the existing assembly with the id into. It deletes
// the merged assemblies. All of this is one commit. See assembly.Merge for the result. MergedFrom of the result
// lists the merged assemblies; History still returns their versions.
func (asm Assemblies) Merge(ctx context.Context, into string, from ...string) (Assembly, error) {
	from = slices.Compact(slices.Sorted(slices.Values(from)))
	if len(from) == 0 {
		return Assembly{}, &errs.FieldError{Field: "merged_from", Limit: "at least one assembly", Err: errs.ErrInvalid}
	}
	var result *Assembly
	err := asm.st.Transact(ctx, func(tx *Tx) error {
		dst, err := tx.Assembly(into)
		if err != nil {
			return err
		}
		var sources []*Assembly
		for _, id := range from {
			a, err := tx.Assembly(id)
			if err != nil {
				return err
			}
			sources = append(sources, &a)
		}
		if err := assembly.Merge(&dst, asm.st.inner.Engine.Settings().Now().HalfLife(), sources...); err != nil {
			return err
		}
		result = dst.Clone()
		tx.tx.PutAssemblyAt(result, commit.Conditions{Missing: true}) // members that a source may name are allowed here too
		for _, id := range from {
			if err := tx.DeleteAssembly(id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Assembly{}, err
	}
	return *result.Clone(), nil
}

// All yields the assemblies that pass the filters, ordered by the JSON encoding of their ids. Assemblies have no
// session, metadata or timestamp, so no assembly passes a filter on one of these. See Store.Memories.
func (asm Assemblies) All(ctx context.Context, filters ...Filter) iter.Seq2[Assembly, error] {
	st := asm.st
	return engine.Reading(ctx, st.inner.Engine, func(yield func(Assembly, error) bool) {
		f := filtersOf(ctx, asm.st.inner.Engine, filters)
		if f.Session != nil || f.Reads() {
			return
		}
		for id, err := range st.inner.Engine.IDs(ctx, st.inner.Engine.Kinds().Assemblies, f) {
			if err != nil {
				if !yield(Assembly{}, err) {
					return
				}
				continue
			}
			if !st.inner.Engine.YieldAssembly(ctx, id, yield) {
				return
			}
		}
	})
}

// Count returns the number of assemblies.
func (asm Assemblies) Count(ctx context.Context) (int64, error) {
	st := asm.st
	if err := st.inner.Engine.BeginUse(); err != nil {
		return 0, err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.CatchUp(ctx); err != nil {
		return 0, err
	}
	return st.inner.Engine.State().Live(st.inner.Engine.Kinds().Assemblies.Letter), nil
}

// Containing yields the assemblies that contain a memory, in the order of their ids. It does not read the files of
// other assemblies.
func (asm Assemblies) Containing(ctx context.Context, memory string) iter.Seq2[Assembly, error] {
	return asm.st.inner.Engine.AssembliesWith(ctx, memory)
}

// History yields the versions of an assembly that are still kept; see Store.History.
func (asm Assemblies) History(ctx context.Context, id string) iter.Seq2[Version, error] {
	return asm.st.versionsOf(ctx, asm.st.inner.Engine.Kinds().Assemblies, id)
}

// GetAt returns one version of an assembly; see Store.GetAt.
func (asm Assemblies) GetAt(ctx context.Context, id string, lsn uint64) (Version, error) {
	return asm.st.versionAt(ctx, asm.st.inner.Engine.Kinds().Assemblies, id, lsn)
}
