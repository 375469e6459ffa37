package kind

import (
	"fmt"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Beside finds documents of a kind that cannot exist together, because the path of one is a folder of the other, or
// because a file system treats different paths as equal. It has the paths of the documents' files, and of the folders
// that contain these files. While Add is called, no other goroutine may use the Beside.
type Beside struct {
	kind   *Kind
	folds  bool             // paths are compared by Fold
	places map[string]place // the occupied paths, by the form in which a path is compared
}

// place is an occupied path.
type place struct {
	path   string
	id     string // id of the document whose file is at the path, or below it
	folder bool
}

// NewBeside returns a Beside with the given documents, which must not clash with each other. If folds is true, paths
// are compared in the form that Fold returns.
func NewBeside(k *Kind, folds bool, ids ...string) *Beside {
	b := &Beside{kind: k, folds: folds, places: map[string]place{}}
	for _, id := range ids {
		b.Add(id)
	}
	return b
}

// Clash returns the id of a document in b that cannot exist together with the document id. It returns false if b has no
// such document. A document does not clash with itself.
func (b *Beside) Clash(id string) (other string, clashes bool) {
	b.eachPath(id, func(at string, p place) bool {
		if was, ok := b.places[at]; ok && (was.path != p.path || was.folder != p.folder) {
			other, clashes = was.id, true
		}
		return !clashes
	})
	return other, clashes
}

// Add adds a document. If it clashes with a document in b, Add does not add it, and returns the id of the other
// document and true.
func (b *Beside) Add(id string) (other string, clashes bool) {
	if other, clashes = b.Clash(id); !clashes {
		b.eachPath(id, func(at string, p place) bool { b.places[at] = p; return true })
	}
	return other, clashes
}

// eachPath yields the paths that a document occupies: first its folders, then its file. The parameter at of yield
// is the path in the form in which paths are compared.
func (b *Beside) eachPath(id string, yield func(at string, p place) bool) {
	path := b.kind.FileName(id)
	for at := range len(path) {
		if path[at] == '/' && !yield(b.fold(path[:at]), place{path[:at], id, true}) {
			return
		}
	}
	yield(b.fold(path), place{path, id, false})
}

// Folds reports whether a file system may treat different paths in Folder as equal; see Folding and FoldsAsDisk.
func (k *Kind) Folds() bool {
	_, ok := k.Paths.(Folding)
	return ok
}

// fold returns the form of a path in Folder in which paths are compared.
func (b *Beside) fold(path string) string {
	if f, ok := b.kind.Paths.(Folding); ok && b.folds {
		return f.Fold(path)
	}
	return path
}

// Clashing returns the error for creating the document id, which cannot exist together with the existing document
// other.
func (k *Kind) Clashing(id, other string) error {
	why := "the two paths differ only in case or in how Unicode is written: choose another path"
	switch path, with := k.FileName(id), k.FileName(other); {
	case strings.HasPrefix(with, path+"/"):
		why = "the existing document is in a folder with this path: choose another path"
	case strings.HasPrefix(path, with+"/"):
		why = "the existing document is a file where this path needs a folder: choose another path"
	}
	return &errs.FieldError{Field: "path", Value: human.Quote(id),
		Err: fmt.Errorf("conflicts with the %s %s: %s", k.Noun, human.Quote(other), why)}
}
