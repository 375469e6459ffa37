package verify

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/vector"
)

// vectorFiles verifies the vector files and the mapping files that list their vectors. A flusher may replace these
// files meanwhile, so vectorFiles tries again after a fault, and reports only the faults of the last attempt.
func (v *Run) vectorFiles() error {
	var faults []error
	for range tries {
		faults = faults[:0]
		set, err := vector.Load(v.Source.FS, v.Source.Dir, v.store(), nil)
		if err == nil && set.LSN() > v.Source.Log.Durable() {
			if err := v.Source.CatchUp(v.ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
				return errors.Join(err, set.Release())
			}
			if set.LSN() > v.Source.Log.Durable() {
				err = &errs.CorruptionError{Path: vector.BaseMapping, Offset: -1,
					Err: fmt.Errorf("the vectors cover the log up to position %d, but the log ends at position %d",
						set.LSN(), v.Source.Log.Durable())}
			}
		}
		if err != nil {
			faults = append(faults, err)
		}
		if set == nil {
			continue
		}
		for err := range vector.Verify(set) {
			if faults = append(faults, err); len(faults) == faultsMost {
				break
			}
		}
		v.sum.Vectors = set.Count(vector.Memories) + set.Count(vector.Assemblies)
		v.sum.Bytes += set.Bytes()
		if err := set.Release(); err != nil {
			return err
		}
		if len(faults) == 0 {
			return nil
		}
	}
	for _, err := range distinct(faults) {
		if errors.Is(err, errs.ErrNewerFormat) {
			return err
		}
		path, offset := view.Place(err, vector.BaseMapping)
		if err := v.report(repair.Finding{
			Kind: repair.VectorsDamaged, Severity: repair.Healable, Path: path, Offset: offset, Err: err,
			Stake: "searching by vector; the embeddings themselves are in their documents", Heals: repair.ByDocuments,
			Next: repair.NextRepair,
		}); err != nil {
			return err
		}
	}
	return nil
}

// vectors has the data with which documents are compared: an index, and the vectors that belong to the index. An index
// file or a vector file never changes. So a contradiction between index and vectors is a fault, even while other
// processes write.
type vectors struct {
	v     *Run
	idx   *index.Set
	swaps uint64      // swap counter of the state when it had this index
	model index.Model // the model of the embeddings when the index was written
	set   *vector.Set // the vectors; nil: there is nothing to compare documents with
	// exact means that the index records that the vectors are complete as of the index. Otherwise they are newer than
	// the index, or that is unknown (known is false), and documents in the overlay are not checked.
	exact, known bool
	behind       uint64 // the index was written with the vectors as of this LSN, and the present vectors are older

	embedded, lacking atomic.Int64
	has               [kind.Most]atomic.Int64 // documents with a vector, by kind
}

// vectorsNow loads the index and the vectors from the folder. prev has the result of an earlier call, or is nil;
// vectorsNow continues with the counts in prev.
func (v *Run) vectorsNow(prev *vectors) (*vectors, error) {
	for try := 0; ; try++ {
		s := &vectors{v: v, swaps: v.Source.State.Swaps(), idx: v.Source.State.Set()}
		if s.idx == nil {
			return nil, errs.ErrClosed
		}
		s.model = v.Source.State.ModelBefore(s.idx.LSN())
		if prev != nil {
			s.embedded.Store(prev.embedded.Load())
			s.lacking.Store(prev.lacking.Load())
		}
		set, err := vector.Load(v.Source.FS, v.Source.Dir, v.store(), nil)
		if err != nil || v.indexBad {
			if err == nil {
				err = set.Release()
			}
			if err != nil && !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, table.ErrForeign) && try < tries {
				if err := s.idx.Release(); err != nil {
					return nil, err
				}
				continue
			}
			return s, nil // reported by vectorFiles
		}
		at, _, known := index.Vectors(s.idx)
		s.set, s.known, s.exact = set, known, known && set.LSN() == at
		if !known || s.exact {
			return s, nil
		}
		if try < tries { // a round has written the vectors and not yet the index
			if err := errors.Join(s.release(), v.Source.CatchUp(v.ctx)); err != nil && !errors.Is(err, errs.ErrCorrupt) {
				return nil, err
			}
			continue
		}
		if set.LSN() < at {
			s.behind = at
		}
		return s, nil
	}
}

func (s *vectors) release() error {
	if s == nil {
		return nil
	}
	err := s.idx.Release()
	if s.set != nil {
		err = errors.Join(err, s.set.Release())
	}
	return err
}

// changing reports whether the vectors cannot be compared because the embedding model is being changed: some documents
// in the index have embeddings by another model, or the vectors may already include the change although the index does
// not.
func (s *vectors) changing() bool {
	return s.model.Switching() || s.v.Source.State.Model().Since >= s.idx.LSN()
}

// judged reports whether the vector of a document can be compared with the document's line in the index. It returns
// false if there are no vectors as of the index, if the embedding model is being changed, or if the document may have
// changed since the index was written and the vectors may be newer than the index.
func (s *vectors) judged(k *kind.Kind, id string) bool {
	if s.set == nil || s.behind != 0 {
		return false
	}
	if s.changing() {
		return false // some vectors come from the re-embedding
	}
	if s.exact {
		return true
	}
	_, _, over := s.v.Source.State.Overlay().Get(k.Letter, id)
	return !over && s.v.Source.State.Swaps() == s.swaps
}

// row returns the vector of a document and the number of its row; nil if the document has no vector. ok is false if
// the vector cannot be read, which vectorFiles reports.
func (s *vectors) row(k *kind.Kind, id string) (row []byte, number int64, ok bool) {
	row, number, has, err := s.set.Row(nil, k.VectorKind(), id)
	if err != nil {
		return nil, 0, false
	}
	if !has {
		return nil, 0, true
	}
	return row, number, true
}

// line compares the vector of a document with the document's line in the index. embedding is the embedding in the
// document that was read, if that document has the hash in the line; nil if the document was not read.
func (s *vectors) line(k *kind.Kind, id string, line *index.Entry, embedding *[]float32) *repair.Finding {
	dims := line.Dimension
	if embedding != nil && dims == index.UnknownDimension {
		dims = len(*embedding)
	}
	if !k.Vectors {
		return nil
	}
	if dims > 0 {
		s.embedded.Add(1)
	}
	if !s.judged(k, id) {
		return nil
	}
	row, number, ok := s.row(k, id)
	if !ok {
		return nil
	}
	if row != nil {
		s.has[k.At].Add(1)
	}
	out := &repair.Finding{Path: vector.BaseMapping, Offset: -1, ID: id, LSN: line.Version, Severity: repair.Healable,
		Heals: repair.ByDocuments, Next: repair.NextRepair,
		Stake: "finding the " + k.Noun + " by its vector"}
	switch {
	case embedding != nil && dims != len(*embedding):
		out.Kind, out.Path, out.Heals, out.Next = repair.IndexLine, index.BaseName, repair.ByIndex, repair.NextRebuild
		out.Err = fmt.Errorf("the index line has an embedding of %d dimensions, but the document has one of %d",
			dims, len(*embedding))
	case dims == 0 && row != nil:
		out.Kind, out.Err = repair.VectorGhost,
			fmt.Errorf("vector %d belongs to %s %s, which has no embedding", number, k.Noun, human.Quote(id))
	case dims > 0 && dims != s.set.Dim() && s.set.Exists():
		out.Kind, out.Severity, out.Heals, out.Next, out.Path = repair.VectorMisfit, repair.Info, repair.ByHand, "",
			k.File(id)
		out.Err = fmt.Errorf("the embedding has %d dimensions, but the vectors of this store have %d: no vector is stored",
			dims, s.set.Dim())
		if row == nil {
			break
		}
		out.Kind, out.Severity, out.Heals, out.Next, out.Path = repair.VectorStale, repair.Healable, repair.ByDocuments,
			repair.NextRepair, vector.BaseMapping
		out.Err = fmt.Errorf("vector %d has %d dimensions, but the embedding of the document has %d",
			number, s.set.Dim(), dims)
	case dims > 0 && row == nil:
		if s.lacking.Add(1); !s.known {
			return nil // counted; reported by completeness
		}
		out.Kind, out.Err = repair.VectorMissing,
			fmt.Errorf("the vector files have no vector for the embedding of %d dimensions", dims)
	case row == nil:
		return nil
	case dims > 0 && number != line.VectorNumber():
		if s.lacking.Add(1); !s.known {
			return nil
		}
		out.Kind, out.Err = repair.VectorStale,
			fmt.Errorf("the document has vector %d, but its index line names vector %d", number, line.VectorNumber())
	case embedding == nil || bytes.Equal(s.set.Metric().Row(nil, *embedding), row):
		return nil
	case !s.known && line.VectorID != 0 && line.Version >= s.set.LSN():
		s.lacking.Add(1) // the number in the line may belong to another vector by now
		return nil
	default:
		out.Kind, out.Err = repair.VectorStale, fmt.Errorf("vector %d differs from the embedding in the document", number)
	}
	return out
}

// ghosts reports vectors that belong to no document.
func (s *vectors) ghosts(k *kind.Kind) error {
	v := s.v
	if !k.Vectors || s.set == nil || s.behind != 0 || v.o.Parts < 2 && s.has[k.At].Load() == s.set.Count(k.VectorKind()) {
		return nil
	}
	err := s.set.Walk(k.VectorKind(), func(id string, number int64) error {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if _, ok, err := s.idx.Get(nil, k.Section, id); ok || err != nil || !s.judged(k, id) {
			return nil
		}
		if name := k.FileName(id); !v.o.Chosen(name) {
			return nil
		}
		if !s.known {
			s.lacking.Add(1)
			return nil
		}
		return v.report(repair.Finding{Kind: repair.VectorGhost, Severity: repair.Healable, Path: vector.BaseMapping,
			Offset: -1, ID: id,
			Stake: "a search may find a memory that does not exist", Heals: repair.ByDocuments, Next: repair.NextRepair,
			Err: fmt.Errorf("vector %d belongs to no %s", number, k.Noun)})
	})
	if errors.Is(err, errs.ErrCorrupt) {
		return nil // reported by vectorFiles
	}
	return err
}

// completeness reports vectors that are older than the index or incomplete. It is called after all
// kinds were compared.
func (s *vectors) completeness() error {
	if s == nil {
		return nil
	}
	v := s.v
	f := repair.Finding{Kind: repair.VectorsBehind, Severity: repair.Healable, Path: vector.BaseMapping, Offset: -1,
		Stake: "searching by vector, until the next search or flush rebuilds the vector files",
		Heals: repair.ByDocuments, Next: repair.NextRepair}
	switch {
	case s.set == nil || s.embedded.Load() == 0:
		return nil
	case s.changing():
		f.Kind, f.Severity, f.Stake = repair.VectorsPending, repair.Info,
			"nothing: until a re-embedding has ended, vectors and documents are not compared"
		f.Err = errors.New("the model was changed, and the index has embeddings by the previous one")
		if f.Next = repair.NextFlush; s.v.Source.State.Model().Switching() {
			f.Next = repair.NextReindex
		}
	case s.behind != 0 && !s.set.Exists():
		f.Err = fmt.Errorf("the vectors are missing; the index was written with vectors as of position %d", s.behind)
	case s.behind != 0:
		f.LSN, f.Err = s.set.LSN(),
			fmt.Errorf("the vectors are as of position %d, but the index was written with vectors as of position %d",
				s.set.LSN(), s.behind)
	case !s.known && s.lacking.Load() > 0:
		f.Kind, f.Severity, f.Stake = repair.VectorsPending, repair.Info,
			"nothing: the next search by vector, or memctl flush, completes them"
		f.Err = fmt.Errorf("%s not written yet", human.Count(int(s.lacking.Load()), "vector is", "vectors are"))
		f.Next = ""
	default:
		return nil
	}
	return v.report(f)
}
