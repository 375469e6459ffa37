package past

import (
	"slices"

	"github.com/varve-db/varve/internal/kind"
)

// Known reads what archive and log have of the documents with files of these names, by name. undone
// are, by id, versions that a repair wrote and an undo deleted: they say nothing about the file,
// which is as it was before both.
func (v *Reader) Known(k *kind.Kind, names map[string]bool, undone map[string][]uint64) (map[string][]Version, error) {
	all, err := v.All(k, func(id string) bool { return names[k.FileName(id)] })
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
		known[k.FileName(id)] = left
	}
	return known, nil
}
