package words

import (
	"context"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/words"
)

const (
	tierFirst  = 64 // maximum number of rows of a segment in the lowest tier
	tierFactor = 8  // ratio of the sizes of two successive tiers
	tierMost   = 8  // number of segments of a tier that are merged into one

	deadInFiles = 4
	// like deadInFiles, for segments in memory; it is smaller, so that these segments are rewritten later: they
	// exist only until the next index, and are merged while searches run
	deadInMemory = 2
)

func tierOf(rows int) (t int) {
	for most := tierFirst; rows > most; most *= tierFactor {
		t++
	}
	return t
}

// merge merges segments of the word index until no size class has too many of them, and returns the number of segments
// that it merged. It merges only segments for which may returns true. It rewrites a segment alone if no row in it is
// live, or if more than 1/deadIn of its rows, and more than tierFirst rows, are dead. A row is dead if its version of
// the document was replaced or deleted. merge ends with the error of ctx when ctx ends.
func (w *Words) merge(ctx context.Context, deadIn int, may func(*words.Part) bool) (n int, err error) {
	for {
		ids := w.due(deadIn, may)
		if ids == nil {
			return n, nil
		}
		if err := w.replace(ctx, ids, nil); err != nil {
			return n, err
		}
		n += len(ids)
	}
}

func (w *Words) due(deadIn int, may func(*words.Part) bool) []uint64 {
	tiers := map[int][]*words.Part{}
	for _, p := range w.set.Parts() {
		if !may(p) {
			continue
		}
		if p.Rows() == 0 || p.Deaths() > tierFirst && p.Deaths()*deadIn > p.Seg.Rows {
			return []uint64{p.ID}
		}
		t := tierOf(p.Rows())
		tiers[t] = append(tiers[t], p)
	}
	for t := 0; len(tiers) > 0; t++ {
		list := tiers[t]
		delete(tiers, t)
		if len(list) < tierMost {
			continue
		}
		var ids []uint64
		rows, bytes := 0, 0
		for _, p := range list {
			if rows+p.Rows() > mostRows || bytes+p.Seg.Size() > mostBytes {
				continue
			}
			ids = append(ids, p.ID)
			rows += p.Rows()
			bytes += p.Seg.Size()
		}
		if len(ids) > 1 && rows > tierFirst<<(3*t) || len(ids) >= tierMost {
			return ids
		}
	}
	return nil
}

// replace merges some segments into one. If f is not nil, replace also writes the new segment to a file in the folder
// f.
func (w *Words) replace(ctx context.Context, ids []uint64, f *view.Folder) error {
	merged, moved, err := w.set.Merge(ctx, ids)
	if err != nil {
		return err
	}
	with := func(seg *words.Segment) (*words.Set, error) { return w.set.Merged(w.next, seg, moved) }
	if f != nil && merged != nil {
		return w.file(f, merged.Write, with)
	}
	var seg *words.Segment
	if b := merged.Bytes(); b != nil {
		if seg, err = words.OpenSegment(b); err != nil {
			return err
		}
	}
	set, err := with(seg)
	if err != nil {
		return err
	}
	w.set = set
	w.next++
	return nil
}

// Purge implements view.Purger. Words of deleted rows are in the dictionary of their segment, so each segment
// with deleted rows is rewritten; a merge drops their words.
func (w *Words) Purge(f *view.Folder) error {
	return vfs.Guard(func() error { return w.purge(f) })
}

func (w *Words) purge(f *view.Folder) error {
	ctx := context.Background() // otherwise the files of the view would be removed, and rebuilt from all documents
	if err := w.seal(ctx); err != nil {
		return err
	}
	w.purged = true
	var ids []uint64
	for _, p := range w.set.Parts() {
		if p.Deaths() > 0 {
			ids = append(ids, p.ID)
		}
	}
	for _, id := range ids {
		if err := w.replace(ctx, []uint64{id}, f); err != nil {
			return err
		}
	}
	return nil
}
