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

// Tolerance is the maximum difference between an element of an assembly's composite embedding and the value computed
// from the members: vectors have length 1 and are rounded to float32.
const Tolerance = 1e-4

// relations compares a document, whose bytes match the index, with the document's vector. For an assembly it also
// compares the list of members in the index, the members themselves, and the composite embedding. The result is nil if
// the comparison was not possible, and an empty list that is not nil if nothing is wrong.
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
	if !ok || err != nil || line.ContentHash != hash { // changed since this index was written
		if k == kind.Assemblies {
			return s.recent(hash, c)
		}
		return nil
	}
	list = []repair.Finding{} // not nil: it was compared
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

// pairs compares the members in an assembly's document with the members that the index lists.
func (s *vectors) pairs(c *kind.Content) *repair.Finding {
	if base := s.idx.Base(); base != nil && !base.Has(index.Members) {
		return nil // the index is older than this section
	}
	named, err := index.Pairs(s.idx, index.Members, c.ID)
	if err != nil {
		return nil // reported with the index
	}
	slices.Sort(named)
	if slices.Equal(named, slices.Sorted(slices.Values(c.Members))) {
		return nil
	}
	return &repair.Finding{Kind: repair.IndexMembers, Severity: repair.Healable, Path: index.BaseName, Offset: -1,
		Err: fmt.Errorf("the index lists %d members and the document %d, and the two lists differ", len(named),
			len(c.Members)),
		Stake: "finding the assemblies of a memory, and removing a deleted memory from its assemblies",
		Heals: repair.ByFiles, Next: repair.NextRebuild}
}

// missing reports the members of an assembly that do not exist. An import may create such members,
// so this is not damage.
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
		Err: fmt.Errorf("%d of %d members do not exist: %s%s", len(gone), len(c.Members), strings.Join(names, ", "),
			more),
		Stake: "nothing: an assembly may have members that do not exist yet", Heals: repair.ByTakingOut,
		Next: repair.NextMembers}
}

// composite compares the composite embedding of an assembly with the composite of the members' vectors. It does not
// check the embedding if no member has a vector: in that case the caller of the store provides the embedding.
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

// compareComposite returns a finding if an assembly's composite embedding differs from want, and nil if it
// does not.
func compareComposite(c *kind.Content, want []float32) *repair.Finding {
	f := &repair.Finding{Kind: repair.CompositeWrong, Severity: repair.Healable, Path: kind.Assemblies.File(c.ID),
		Offset: -1,
		Stake:  "finding the assembly by the content of its members", Heals: repair.ByRecomputing, Next: repair.NextRepair}
	has, curved := c.Group.CompositeEmbedding, c.Group.HyperbolicEmbedding
	switch {
	case len(has) != len(want):
		f.Err = fmt.Errorf("the composite embedding has %d dimensions, but the embeddings of the members have %d",
			len(has), len(want))
	case differs(has, want) >= 0:
		i := differs(has, want)
		f.Err = fmt.Errorf("element %d of the composite embedding is %g, but the value computed from the members is "+
			"%g", i, has[i], want[i])
	case len(curved) > 0 && (len(curved) != len(has) || differs(curved, memstore.Hyperbolic(has)) >= 0):
		f.Err = errors.New("the hyperbolic embedding does not match the composite embedding")
	default:
		return nil
	}
	return f
}

// differs returns the first index at which two vectors differ by more than Tolerance, or -1 if they do not differ so
// much at any index.
func differs(a, b []float32) int {
	for i := range a {
		if d := math.Abs(float64(a[i]) - float64(b[i])); !(d <= Tolerance) { // true also for NaN
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

// recent checks an assembly whose version is not in the index yet. A commit that changes the embedding of a
// member or deletes the member also writes the assembly. So if the assembly still has the same version after
// its members were read, the data of the members belong together.
func (s *vectors) recent(hash [32]byte, c *kind.Content) []repair.Finding {
	v := s.v
	was, err := v.Source.State.Find(kind.Assemblies.Letter, c.ID)
	if err != nil || !was.InLog {
		return nil // the index was replaced meanwhile
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
	// while the model is switched, a member's vector may not be that of its embedding
	if whole && counted && !v.Source.State.Model().Switching() {
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

// embedding returns the embedding of the newest version of a memory; nil if there is no such memory. ok is false if
// the memory cannot be read.
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
