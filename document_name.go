package varve

import (
	"strings"

	"github.com/varve-db/varve/internal/docfile"
)

// documentName: the others are what editors and people put beside.
func documentName(name string) bool {
	return strings.HasSuffix(name, docfile.Extension) && !strings.HasPrefix(name, ".")
}

// hasDocuments says whether a folder's names include a document's.
func hasDocuments(names []string) bool {
	for _, n := range names {
		if strings.HasSuffix(n, ".json") {
			return true
		}
	}
	return false
}
