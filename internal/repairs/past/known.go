package past

import (
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/document"
)

// Known reads what archive and log have of the documents with files of these names, by name.
func (v *Reader) Known(k *document.Kind, names map[string]bool) (map[string][]Version, error) {
	all, err := v.All(k, func(id string) bool { return names[docfile.FileName(id)] })
	if err != nil {
		return nil, err
	}
	known := map[string][]Version{}
	for id, list := range all {
		known[docfile.FileName(id)] = list
	}
	return known, nil
}
