package repair

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/memstore"
)

// Tolerance is how far a number of a composite may lie from what its members give:
// theirs are of length 1, and rounded to float32.
const Tolerance = 1e-4

// relations compares a document, whose bytes the index names, with what was derived
// from it and what it was derived from: its vector; of an assembly the pairs, the
// members, the composite. The result is nil where that was not possible.
func (v *verify) relations(k *kind, id string, hash [32]byte, c *content) (list []Finding) {
	s := v.vectors
	if s == nil || v.indexBad {
		return nil
	}
	b, ok, err := s.idx.Get(nil, k.section, id)
	if err != nil {
		return nil
	}
	line, err := index.ParseLine(b)
	if !ok || err != nil || line.ContentHash != hash { // changed since this index
		if k == assemblies {
			return s.recent(hash, c)
		}
		return nil
	}
	list = []Finding{} // it was compared
	if s.embeds(k) {
		list = append(list, lacks(id, c.memory)...)
	}
	if f := s.line(k, id, &line, &c.vector); f != nil {
		list = append(list, *f)
	}
	if k != assemblies {
		return list
	}
	for _, f := range []*Finding{s.pairs(c), s.missing(c), s.composite(c)} {
		if f != nil {
			f.ID, f.LSN = id, line.Version
			list = append(list, *f)
		}
	}
	return list
}

// pairs compares who is in an assembly with the pairs of the index.
func (s *vectors) pairs(c *content) *Finding {
	if base := s.idx.Base(); base != nil && !base.Has(index.Members) {
		return nil // from before there was the section
	}
	named, err := index.Pairs(s.idx, index.Members, c.id)
	if err != nil {
		return nil // told with the index
	}
	slices.Sort(named)
	if slices.Equal(named, slices.Sorted(slices.Values(c.members))) {
		return nil
	}
	return &Finding{Kind: IndexMembers, Severity: Healable, Path: index.BaseName, Offset: -1,
		Err:   fmt.Errorf("the index names %d members of it, its document %d, and they are not the same", len(named), len(c.members)),
		Stake: "finding what a memory is in, and taking it out when it is deleted", Heals: ByFiles, Next: nextRebuild}
}

// missing lists the members that are not there, in the index or since. An import
// may name such, so it is no damage.
func (s *vectors) missing(c *content) *Finding {
	var gone []string
	for _, id := range c.members {
		if _, ok, err := s.idx.Get(nil, index.Memories, id); ok || err != nil {
			continue
		}
		if _, err := s.v.s.State.Find(memories.letter, id); errors.Is(err, errs.ErrNotFound) {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	const most = 5
	var names []string
	for _, id := range gone[:min(most, len(gone))] {
		names = append(names, errs.Quote(id))
	}
	more := ""
	if n := len(gone) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return &Finding{Kind: AssemblyMembers, Severity: Info, Path: assemblies.file(c.id), Offset: -1,
		Err:   fmt.Errorf("%d of its %d members are not there: %s%s", len(gone), len(c.members), strings.Join(names, ", "), more),
		Stake: "nothing of the store: it may name what is not there yet", Heals: ByTakingOut, Next: nextMembers}
}

// composite compares that of an assembly with what the vectors of its members give.
// As long as none of them ever had one it is what somebody said.
func (s *vectors) composite(c *content) *Finding {
	if s.set == nil || !s.set.Exists() || s.behind != 0 || !s.known || !s.judged(assemblies, c.id) {
		return nil
	}
	counted, whole := false, true
	want, _ := assembly.Composite(s.set.Dim(), func(yield func([]float32) bool) {
		for _, id := range c.members {
			if !s.judged(memories, id) {
				whole = false
				return
			}
			row, _, ok := s.row(memories, id)
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
func compareComposite(c *content, want []float32) *Finding {
	f := &Finding{Kind: CompositeWrong, Severity: Healable, Path: assemblies.file(c.id), Offset: -1,
		Stake: "finding the assembly by what its members say", Heals: ByRecomputing, Next: nextRepair}
	has, curved := c.group.CompositeEmbedding, c.group.HyperbolicEmbedding
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

// recent judges an assembly that the index does not know as it is. Who changes the
// embedding of a member, or deletes it, writes the assembly in the same commit: so
// what was read of the members belongs together if that is still the same version.
func (s *vectors) recent(hash [32]byte, c *content) []Finding {
	v := s.v
	was, err := v.s.State.Find(assemblies.letter, c.id)
	if err != nil || !was.InLog {
		return nil // the index went on meanwhile
	}
	e, err := v.s.Log.ReadAt(v.ctx, was.Version)
	if err != nil || e.Key != assemblies.key(c.id) {
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
	var list []Finding
	whole := true
	want, _ := assembly.Composite(dim, func(yield func([]float32) bool) {
		for _, id := range c.members {
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
	found := []*Finding{s.missing(c)}
	if whole && counted && !v.s.State.Model().Switching() { // else what counts of a member need not be its embedding
		found = append(found, compareComposite(c, want))
	}
	if err := v.s.Sight(v.ctx); err != nil {
		return nil
	}
	if now, err := v.s.State.Find(assemblies.letter, c.id); err != nil || now.Version != was.Version {
		return nil
	}
	for _, f := range found {
		if f != nil {
			f.ID, f.LSN = c.id, was.Version
			list = append(list, *f)
		}
	}
	return list
}

// embedding is that of a memory's newest version; none where there is no such
// memory. ok is false where it cannot be read.
func (v *verify) embedding(id string) (vector []float32, ok bool) {
	p, err := v.s.State.Find(memories.letter, id)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, true
	}
	if err != nil {
		return nil, false
	}
	if p.InLog {
		if e, err := v.s.Log.ReadAt(v.ctx, p.Version); err == nil && e.Key == memories.key(id) {
			view, err := state.Read(&e)
			return view.Vector(nil), err == nil
		}
		return nil, false
	}
	f := v.read(memories, docfile.FileName(id))
	if f.err != nil || f.hash != p.Entry.ContentHash {
		return nil, false
	}
	c, err := v.decode(memories, f.data)
	return c.vector, err == nil
}
