package past

import (
	"github.com/varve-db/varve/internal/kind"
)

// Known returns, by file name, the versions that archive and log have of the documents whose files have these
// names.
func (v *Reader) Known(k *kind.Kind, names map[string]bool) (map[string][]Version, error) {
	all, err := v.All(k, func(id string) bool { return names[k.FileName(id)] })
	if err != nil {
		return nil, err
	}
	known := map[string][]Version{}
	for id, list := range all {
		known[k.FileName(id)] = list
	}
	return known, nil
}
