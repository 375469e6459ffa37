package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/repair"
)

// Tolerance is how far a number of a composite may lie from what its members give:
// theirs are of length 1, and rounded to float32.
const Tolerance = 1e-4

// relations compares a document, whose bytes the index names, with what was derived
// from it and what it was derived from: its vector; of an assembly the pairs, the
// members, the composite. The result is nil where that was not possible.
func (v *Run) relations(k *kind.Kind, id string, hash [32]byte, c *kind.Content) (list []repair.Finding) {
	s := v.vectors
	if s == nil || v.indexBad {
		return nil
	}
	b, ok, err := s.idx.Get(nil, k.Section, id)
	if err != nil {
		return nil
	}
	line, err := index.ParseLine(b)
	if !ok || err != nil || line.ContentHash != hash { // changed since this index
		if k == kind.Assemblies {
			return s.recent(hash, c)
		}
		return nil
	}
	list = []repair.Finding{} // it was compared
	if s.embeds(k) {
		list = append(list, lacks(id, c.Memory)...)
	}
	if f := s.line(k, id, &line, &c.Vector); f != nil {
		list = append(list, *f)
	}
	if k != kind.Assemblies {
		return list
	}
	for _, f := range []*repair.Finding{s.pairs(c), s.missing(c), s.composite(c)} {
		if f != nil {
			f.ID, f.LSN = id, line.Version
			list = append(list, *f)
		}
	}
	return list
}

// pairs compares who is in an assembly with the pairs of the index.
func (s *vectors) pairs(c *kind.Content) *repair.Finding {
	if base := s.idx.Base(); base != nil && !base.Has(index.Members) {
		return nil // from before there was the section
	}
	named, err := index.Pairs(s.idx, index.Members, c.ID)
	if err != nil {
		return nil // told with the index
	}
	slices.Sort(named)
	if slices.Equal(named, slices.Sorted(slices.Values(c.Members))) {
		return nil
	}
	return &repair.Finding{Kind: repair.IndexMembers, Severity: repair.Healable, Path: index.BaseName, Offset: -1,
		Err: fmt.Errorf("the index names %d members of it, its document %d, and they are not the same", len(named),
			len(c.Members)),
		Stake: "finding what a memory is in, and taking it out when it is deleted", Heals: repair.ByFiles,
		Next: repair.NextRebuild}
}

// missing lists the members that are not there, in the index or since. An import
// may name such, so it is no damage.
func (s *vectors) missing(c *kind.Content) *repair.Finding {
	var gone []string
	for _, id := range c.Members {
		if _, ok, err := s.idx.Get(nil, index.Memories, id); ok || err != nil {
			continue
		}
		if _, err := s.v.Source.State.Find(kind.Memories.Letter, id); errors.Is(err, errs.ErrNotFound) {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	const most = 5
	var names []string
	for _, id := range gone[:min(most, len(gone))] {
		names = append(names, human.Quote(id))
	}
	more := ""
	if n := len(gone) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return &repair.Finding{Kind: repair.AssemblyMembers, Severity: repair.Info, Path: kind.Assemblies.File(c.ID),
		Offset: -1,
		Err: fmt.Errorf("%d of its %d members are not there: %s%s", len(gone), len(c.Members), strings.Join(names, ", "),
			more),
		Stake: "nothing of the store: it may name what is not there yet", Heals: repair.ByTakingOut, Next: repair.NextMembers}
}

// composite compares that of an assembly with what the vectors of its members give.
// As long as none of them ever had one it is what somebody said.
func (s *vectors) composite(c *kind.Content) *repair.Finding {
	if s.set == nil || !s.set.Exists() || s.behind != 0 || !s.known || !s.judged(kind.Assemblies, c.ID) {
		return nil
	}
	counted, whole := false, true
	want, _ := assembly.Composite(s.set.Dim(), func(yield func([]float32) bool) {
		for _, id := range c.Members {
			if !s.judged(kind.Memories, id) {
				whole = false
				return
			}
			row, _, ok := s.row(kind.Memories, id)
			if whole = ok; !ok {
				return
			}
			counted = counted || row != nil
			if row != nil && !yield(floats(row)) {
				return
			}
		}
	})
	if !whole || !counted {
		return nil
	}
	return compareComposite(c, want)
}

// compareComposite says where an assembly's composite is not the one that it should have.
func compareComposite(c *kind.Content, want []float32) *repair.Finding {
	f := &repair.Finding{Kind: repair.CompositeWrong, Severity: repair.Healable, Path: kind.Assemblies.File(c.ID),
		Offset: -1,
		Stake:  "finding the assembly by what its members say", Heals: repair.ByRecomputing, Next: repair.NextRepair}
	has, curved := c.Group.CompositeEmbedding, c.Group.HyperbolicEmbedding
	switch {
	case len(has) != len(want):
		f.Err = fmt.Errorf("its composite has %d dimensions, that of its members %d", len(has), len(want))
	case differs(has, want) >= 0:
		i := differs(has, want)
		f.Err = fmt.Errorf("number %d of its composite is %g, its members give %g", i, has[i], want[i])
	case len(curved) > 0 && (len(curved) != len(has) || differs(curved, memstore.Hyperbolic(has)) >= 0):
		f.Err = errors.New("its hyperbolic embedding is not that of its composite")
	default:
		return nil
	}
	return f
}

// differs is the first number that is further off than Tolerance, or -1.
func differs(a, b []float32) int {
	for i := range a {
		if d := math.Abs(float64(a[i]) - float64(b[i])); !(d <= Tolerance) { // also what is no number
			return i
		}
	}
	return -1
}

func floats(row []byte) []float32 {
	v := make([]float32, len(row)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
	}
	return v
}

// recent judges an assembly that the index does not know as it is. Changing the embedding of a
// member, or deleting it, writes the assembly in the same commit: so what was read of the members
// belongs together if that is still the same version.
func (s *vectors) recent(hash [32]byte, c *kind.Content) []repair.Finding {
	v := s.v
	was, err := v.Source.State.Find(kind.Assemblies.Letter, c.ID)
	if err != nil || !was.InLog {
		return nil // the index went on meanwhile
	}
	e, err := v.Source.Log.ReadAt(v.ctx, was.Version)
	if err != nil || e.Key != kind.Assemblies.Key(c.ID) {
		return nil
	}
	line, _, err := state.LineIn(&e)
	if err != nil || line.ContentHash != hash {
		return nil
	}
	dim, counted := 0, false
	if s.set != nil {
		dim = s.set.Dim()
	}
	var list []repair.Finding
	whole := true
	want, _ := assembly.Composite(dim, func(yield func([]float32) bool) {
		for _, id := range c.Members {
			vector, ok := v.embedding(id)
			if whole = ok; !ok {
				return
			}
			counted = counted || len(vector) > 0 && (dim == 0 || len(vector) == dim)
			if !yield(vector) {
				return
			}
		}
	})
	found := []*repair.Finding{s.missing(c)}
	if whole && counted && !v.Source.State.Model().Switching() { // else what counts of a member need not be its embedding
		found = append(found, compareComposite(c, want))
	}
	if err := v.Source.CatchUp(v.ctx); err != nil {
		return nil
	}
	if now, err := v.Source.State.Find(kind.Assemblies.Letter, c.ID); err != nil || now.Version != was.Version {
		return nil
	}
	for _, f := range found {
		if f != nil {
			f.ID, f.LSN = c.ID, was.Version
			list = append(list, *f)
		}
	}
	return list
}

// embedding is that of a memory's newest version; none where there is no such
// memory. ok is false where it cannot be read.
func (v *Run) embedding(id string) (vector []float32, ok bool) {
	p, err := v.Source.State.Find(kind.Memories.Letter, id)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, true
	}
	if err != nil {
		return nil, false
	}
	if p.InLog {
		if e, err := v.Source.Log.ReadAt(v.ctx, p.Version); err == nil && e.Key == kind.Memories.Key(id) {
			view, err := state.Read(&e)
			return view.Vector(nil), err == nil
		}
		return nil, false
	}
	f := v.Read(kind.Memories, kind.Memories.FileName(id))
	if f.Err != nil || f.Hash != p.Entry.ContentHash {
		return nil, false
	}
	c, err := v.Decode(kind.Memories, "", f.Data)
	return c.Vector, err == nil
}
