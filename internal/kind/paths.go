package kind

import (
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
)

// Paths maps the documents of a kind to the paths of their files and back. A path is relative to the folder of the kind
// and has slashes.
//
// For a kind whose documents are in subfolders (Tree), an id has the same folders as its path: the id of a document in
// a folder begins with the id for the folder's path, and a slash. docfile.CheckPath has the limits on such a path; a
// document whose path exceeds them is refused. A document cannot be created if its path is the path of a folder of
// another document, or is below the path of another document: see Beside.
type Paths interface {
	// Path returns the path of a document's file. No two ids have the same path, and no path has a line
	// break, since backups list paths.
	Path(id string) string
	// ID returns the id of the document to which a path belongs. If a path does not contain the id, for
	// example because it contains a hash instead, ID returns false, and the part of the path that replaces the
	// id.
	ID(path string) (id string, ok bool)
	// IsDocument reports whether a file at a path may be a document, as opposed to a file of an editor or tool. It may
	// return true for a path that Path never returns.
	IsDocument(path string) bool
	// IsOwn reports whether the store itself uses this path for a file, or for a folder.
	IsOwn(path string, folder bool) bool
	// Tree reports whether a path may have folders. Otherwise subfolders of the kind's folder are not
	// searched.
	Tree() bool
}

// Folding is implemented by the Paths of a Tree if some file systems treat different paths as equal.
type Folding interface {
	Paths
	// Fold returns the form of a path by which it is compared, element by element. Of two different paths with the same
	// Fold only one can exist, as a document or as a folder.
	Fold(path string) string
}

// Portable is implemented by Paths that differ between operating systems. A store may have paths that another operating
// system has written.
type Portable interface {
	Paths
	// IsPath reports whether a path is the path of a document on any of the systems.
	IsPath(path, id string) bool
}

// Normalizing is implemented by Paths if the path of a file may be in another Unicode normal form than the path of the
// document.
type Normalizing interface {
	Paths
	// Normal returns the path that a file should have instead of the given path. It returns false if the file has that
	// path already, or if neither path is that of a document.
	Normal(path string) (string, bool)
}

// Normal returns the path in Folder that a file should have instead of the given path. It returns false if the file may
// keep its path: see Normalizing.
func (k *Kind) Normal(path string) (string, bool) {
	if p, ok := k.Paths.(Normalizing); ok {
		return p.Normal(path)
	}
	return "", false
}

// jsonPaths is the Paths of a kind whose documents are JSON files <name>.json, in one folder.
type jsonPaths struct{}

func (jsonPaths) Path(id string) string { return jsondoc.FileName(id) }

func (jsonPaths) ID(path string) (id string, ok bool) {
	id, ok = strings.CutSuffix(path, jsondoc.Extension)
	return id, ok && jsondoc.PlainName(id)
}

func (jsonPaths) IsDocument(path string) bool {
	return strings.HasSuffix(path, jsondoc.Extension) && !strings.HasPrefix(path, ".") && !strings.HasPrefix(path, "#")
}

func (jsonPaths) IsOwn(path string, folder bool) bool {
	return !folder && jsondoc.IsFileName(path)
}

func (jsonPaths) Tree() bool { return false }

func (k *Kind) paths() Paths {
	if k.Paths == nil {
		return jsonPaths{}
	}
	return k.Paths
}

// FileName returns the path of a document's file in Folder; see Paths.
func (k *Kind) FileName(id string) string {
	if k.Paths == nil {
		return jsondoc.FileName(id)
	}
	return k.Paths.Path(id)
}

// File returns the path of a document's file relative to the store.
func (k *Kind) File(id string) string { return k.Folder + "/" + k.FileName(id) }

// IsFile reports whether rel, a path in a store, is the path of the file of document id, on this system or on
// another one.
func (k *Kind) IsFile(rel, id string) bool {
	if rel == k.File(id) {
		return true
	}
	p, ok := k.Paths.(Portable)
	path, in := strings.CutPrefix(rel, k.Folder+"/")
	return ok && in && p.IsPath(path, id)
}

// Below converts a path that is relative to the store to a path that is relative to the kind's folder.
func (k *Kind) Below(rel string) string { return strings.TrimPrefix(rel, k.Folder+"/") }

// ID returns the id of the document to which a path in Folder belongs. It returns false if the path does not contain an
// id.
func (k *Kind) ID(name string) (id string, ok bool) {
	id, ok = k.paths().ID(name)
	return id, ok && k.canBe(name)
}

// canBe reports whether name can be the path of a document in Folder.
func (k *Kind) canBe(name string) bool { return !k.Tree() || docfile.CheckPath(name) == nil }

// IDAt returns the id that Decode needs for the file at a path in Folder. It returns "" if the document itself contains
// its id.
func (k *Kind) IDAt(name string) string {
	if !k.Opaque {
		return ""
	}
	id, _ := k.ID(name)
	return id
}

// IsDocument reports whether a path in Folder has the form of a document's path. Files of editors, tools and users have
// other paths.
func (k *Kind) IsDocument(name string) bool { return k.paths().IsDocument(name) && k.canBe(name) }

// HasDocuments reports whether one of the names, paths in Folder, has the form of a document's path.
func (k *Kind) HasDocuments(names []string) bool { return slices.ContainsFunc(names, k.IsDocument) }

// Tree reports whether the documents of the kind may be in subfolders of Folder.
func (k *Kind) Tree() bool { return k.Paths != nil && k.Paths.Tree() }

// CheckID returns an error for an id whose file cannot be in the folder of the kind.
func (k *Kind) CheckID(id string) error {
	if !k.Tree() {
		return nil
	}
	return docfile.CheckPath(k.FileName(id))
}

// In returns the folder of the kind in the store with the layout l.
func (k *Kind) In(l docfile.Layout) *docfile.Folder {
	o := docfile.FolderOptions{Tree: k.Tree(), Empty: k.Opaque, KeepMode: k.FileWins, Most: k.MostBytes}
	if k.Roots != nil {
		o.KeptBy = k.RootsFile
		o.Kept = func(fsys vfs.FS, root string) ([]string, error) {
			names, err := k.Roots(fsys, root)
			for i, folder := range names {
				names[i] = k.FileName(folder)
			}
			return names, err
		}
	}
	return l.FolderOf(k.Folder, o)
}

// Filed returns all kinds whose documents have files: Kinds and Scopes, in the order of Folders.
func Filed() []*Kind {
	folders := Folders()
	list := make([]*Kind, len(folders))
	for i, folder := range folders {
		list[i] = Filing(folder)
	}
	return list
}

// Filing returns the kind, possibly Scopes, that has its files in a folder of the store, or nil.
func Filing(folder string) *Kind {
	if folder == Scopes.Folder {
		return Scopes
	}
	for _, k := range Kinds {
		if k.Folder == folder {
			return k
		}
	}
	return nil
}
