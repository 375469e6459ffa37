package words

import (
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/words"
)

const (
	tierFirst  = 64 // rows of the segments of the lowest tier
	tierFactor = 8  // from one tier to the next
	tierMost   = 8  // segments of a tier, before they become one

	deadInFiles  = 4
	deadInMemory = 2 // what is there goes with the next index, and is merged beside searches
)

func tierOf(rows int) (t int) {
	for most := tierFirst; rows > most; most *= tierFactor {
		t++
	}
	return t
}

// merge merges segments until no tier has too many, of those that may be, and counts them. A segment of
// which one row in so many is dead is merged alone.
func (w *Words) merge(deadIn int, may func(*words.Part) bool) (n int, err error) {
	for {
		ids := w.due(deadIn, may)
		if ids == nil {
			return n, nil
		}
		if err := w.replace(ids, nil); err != nil {
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

// replace merges some segments into one, which goes into its file at once where the folder is given.
func (w *Words) replace(ids []uint64, f *view.Folder) error {
	merged, moved, err := w.set.Merge(ids)
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

// Purge implements view.Purger. Rows that are dead have words in the dictionary of their segment, so
// each segment that has some is written again; a merge leaves nothing of them.
func (w *Words) Purge(f *view.Folder) error {
	return vfs.Guard(func() error { return w.purge(f) })
}

func (w *Words) purge(f *view.Folder) error {
	if err := w.seal(); err != nil {
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
		if err := w.replace([]uint64{id}, f); err != nil {
			return err
		}
	}
	return nil
}
