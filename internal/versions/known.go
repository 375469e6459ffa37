package versions

import (
	"errors"
	"slices"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/repair"
)

// Known reads what archive and log have of the documents with files of these names, by name. undone
// are, by id, versions that a repair wrote and an undo deleted: they say nothing about the file,
// which is as it was before both.
func (v *Reader) Known(k *document.Kind, names map[string]bool, undone map[string][]uint64) (map[string][]Version, error) {
	all, err := v.All(k, func(id string) bool { return names[docfile.FileName(id)] })
	if err != nil {
		return nil, err
	}
	known := map[string][]Version{}
	for id, list := range all {
		var left []Version
		for i, p := range list {
			if slices.Contains(undone[id], p.Version) || p.Deleted && i > 0 && slices.Contains(undone[id], list[i-1].Version) {
				continue
			}
			left = append(left, p)
		}
		known[docfile.FileName(id)] = left
	}
	return known, nil
}

// Stale says whether a file is an old version of what was deleted: that must not come back. list is
// all that is known of the document.
func Stale(list []Version, hash [32]byte, mtime time.Time) bool {
	if len(list) == 0 || !list[len(list)-1].Deleted {
		return false
	}
	for _, p := range list {
		if !p.Deleted && p.Hash == hash {
			return true
		}
	}
	return !mtime.After(list[len(list)-1].Time)
}

var errDeleted = errors.New("a version of what was deleted since: it must not come back")

// TellDeleted has a plan say of the files of deleted documents that they are set aside, as they are.
// stale says of such a file whether it is one: verifying a store does not read what log and archive
// have of the past.
func TellDeleted(p *repair.RepairPlan, stale func(k *document.Kind, f *repair.Finding) (bool, error)) error {
	var all []repair.Finding
	changed := false
	for _, a := range p.Actions {
		for _, f := range a.Findings {
			if k := document.At(f.Path); k != nil && f.Kind.General() == repair.Stranger {
				old, err := stale(k, &f)
				if err != nil {
					return err
				}
				if old {
					f.Heals, f.Stake, f.Err, changed = repair.ByMoving, "nothing: it was deleted", errDeleted, true
				}
			}
			all = append(all, f)
		}
	}
	if !changed {
		return nil
	}
	all = append(all, p.Left...)
	return p.SetFindings(func(yield func(repair.Finding, error) bool) {
		for _, f := range all {
			if !yield(f, nil) {
				return
			}
		}
	})
}
