package engine

import (
	"strings"

	"github.com/varve-db/varve/internal/jsondoc"
)

// DocumentName reports whether a file is named as a document is: the others are what editors and people put beside.
func DocumentName(name string) bool {
	return strings.HasSuffix(name, jsondoc.Extension) && !strings.HasPrefix(name, ".")
}

// HasDocuments reports whether a folder's names include a document's.
func HasDocuments(names []string) bool {
	for _, n := range names {
		if strings.HasSuffix(n, ".json") {
			return true
		}
	}
	return false
}
