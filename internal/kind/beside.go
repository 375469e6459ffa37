package kind

import (
	"fmt"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Beside has documents of a kind whose paths have folders, by the places that they occupy: their files, and the
// folders that contain the files. It must not be used by several goroutines while Add is called.
type Beside struct {
	kind   *Kind
	folds  bool             // whether paths are compared by Fold
	places map[string]place // the places, by the form in which a path is compared
}

// place is the use of a path: by a document, or by a folder that contains documents.
type place struct {
	path   string
	id     string // id of a document at the path, or below it
	folder bool
}

// NewBeside returns the places of documents that do not clash with each other. folds means that paths are compared by
// Fold.
func NewBeside(k *Kind, folds bool, ids ...string) *Beside {
	b := &Beside{kind: k, folds: folds, places: map[string]place{}}
	for _, id := range ids {
		b.Add(id)
	}
	return b
}

// Clash returns the id of a document in b that cannot exist together with a document of this id, and false if there is
// none. A document does not clash with itself.
func (b *Beside) Clash(id string) (other string, clashes bool) {
	b.each(id, func(at string, p place) bool {
		if was, ok := b.places[at]; ok && (was.path != p.path || was.folder != p.folder) {
			other, clashes = was.id, true
		}
		return !clashes
	})
	return other, clashes
}

// Add adds a document, unless it clashes with another one: then it returns what Clash returns.
func (b *Beside) Add(id string) (other string, clashes bool) {
	if other, clashes = b.Clash(id); !clashes {
		b.each(id, func(at string, p place) bool { b.places[at] = p; return true })
	}
	return other, clashes
}

// each yields the places of a document, with their keys in places.
func (b *Beside) each(id string, yield func(at string, p place) bool) {
	path := b.kind.FileName(id)
	for at := range len(path) {
		if path[at] == '/' && !yield(b.fold(path[:at]), place{path[:at], id, true}) {
			return
		}
	}
	yield(b.fold(path), place{path, id, false})
}

// Folds reports whether differing paths in Folder may be treated as equal by a file system; see Folding, and
// FoldsAsDisk.
func (k *Kind) Folds() bool {
	_, ok := k.Paths.(Folding)
	return ok
}

// fold returns the form of a path in Folder by which the path is compared.
func (b *Beside) fold(path string) string {
	if f, ok := b.kind.Paths.(Folding); ok && b.folds {
		return f.Fold(path)
	}
	return path
}

// Clashing returns the error for the creation of a document that cannot exist together with another one.
func (k *Kind) Clashing(id, other string) error {
	why := "their paths differ only in case or in how Unicode is written: choose another path"
	switch path, with := k.FileName(id), k.FileName(other); {
	case strings.HasPrefix(with, path+"/"):
		why = "that is in a folder of this path: choose another path"
	case strings.HasPrefix(path, with+"/"):
		why = "that is a file, and the path needs a folder in its place: choose another path"
	}
	return &errs.FieldError{Field: "path", Value: human.Quote(id),
		Err: fmt.Errorf("conflicts with the %s %s: %s", k.Noun, human.Quote(other), why)}
}
