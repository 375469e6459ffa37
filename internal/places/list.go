package places

import (
	"path"
	"slices"
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/jsondoc"
	notes "github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/vector"
)

// The files of a migration. MovedName and SecondNote have the same content. Git ignores SecondNote in every store, so
// git clean does not remove the last note about the move.
const (
	MigrationName = "migrate.json"
	MovedName     = "moved.json"
	SecondNote    = "wal/" + MovedName
)

// Views is the folder of the views, such as the index of words. Each view has a folder in it.
const Views = "view_index"

// Words is the folder of the view for word search.
const Words = Views + "/words"

// Sections is the folder of the view for word search in notes.
const Sections = Views + "/sections"

// Meanings is the folder of the view for vector search in notes.
const Meanings = Views + "/meanings"

// Working is the folder of the scopes of working memory.
const Working = "working"

// Computed is the file with the vectors that a re-embedding has computed, in a store and in a backup.
const Computed = vector.Folder + "/reembed"

// Cloned is a file in a store that was cloned from a copy elsewhere. As long as the file exists, the clone is
// read-only. The file is removed when the clone takes over the copy elsewhere.
const Cloned = "wal/cloned"

// use is a set of flags of a path in a store: whether it is a folder, and what the store uses it for.
type use uint

const (
	folder   use = 1 << iota // a folder; the other places are files
	top                      // a part of the store: a migration copies it, with everything in a folder
	named                    // a file that the store opens by this name, so nothing else may have this name
	machine                  // a record of which processes use the store on this machine: never moved, never repaired
	sole                     // a folder whose files may be the only copy of some data
	optional                 // a folder that is not needed to open a store, even if another object is at its path
	note                     // a file of a migration, which opening a store reads completely
)

// place is a path in a store's folder that the store uses.
type place struct {
	path string // path in the store's folder, with slashes
	use  use
}

// list has each place once. The files come first, then the folders, with parents before their children. verify and
// repair report their findings in this order.
var list = slices.Concat([]place{
	{".gitignore", top},
	{"config.json", top | named},
	{"checkpoint", top | named},
	{index.BaseName, top | named},
	{index.DeltaName, top | named},
	{"wal/shared", named | machine},
	{"wal/owner", named | machine},
	{"wal/expiry", named},
	{"wal/aged", named},
	{index.OffsetsName, named},
	{index.OffsetsDeltaName, named},
	{"wal/features", named},
	{"wal/ended", named},
	{"wal/sent", named},
	{"wal/writers", named},
	{"wal/purges", named},
	{"wal/purged-texts", named},
	{"wal/adopted", named},
	{Cloned, named},
	{docfile.RestoringFile, named},
	{MovedName, named | note},
	{SecondNote, named | note},
	{MigrationName, named | note},
	{Computed, named},
	{Computed + ".old", named},
	{Computed + ".lock", named},
	{"wal/open.lock", named | machine},
	{"wal/attach.lock", named | machine},
	{"wal/flush.lock", named | machine},
	{"wal/append.lock", named | machine},
	{"wal/sync.lock", named | machine},
	{"wal/hold.lock", named | machine},
	{"wal/watch.lock", named | machine},
	{"wal/follow.lock", named | machine},
}, vectorFiles(), []place{
	{record.AssemblyFolder, folder | top | sole},
	{index.BackupsDir, folder | top},
	{record.MemoryFolder, folder | top | sole},
	{record.NoteFolder, folder | top | sole},
	{"quarantine", folder | top},
	{"tmp", folder | top},
	{"tmp/parked", folder | optional},
	{"tmp/purge", folder | optional},
	{vector.Folder, folder | top | optional},
	{Views, folder | top | optional},
	{Meanings, folder | optional},
	{Sections, folder | optional},
	{Words, folder | optional},
	{"wal", folder | top | sole},
	{"wal/archive", folder},
	{Working, folder | top | sole},
})

// documents are the folders in which each file is a document, and the file is named after the document's id.
var documents = []documentFolder{{record.MemoryFolder, isJSON}, {record.AssemblyFolder, isJSON}, {Working, isJSON},
	{record.NoteFolder, notes.System().IsOwn}}

// documentFolder is a folder of documents. own is a function that reports whether the store itself uses a path in that
// folder for a file or for a folder. The path has slashes.
type documentFolder struct {
	name string
	own  func(path string, folder bool) bool
}

func isJSON(path string, folder bool) bool { return !folder && jsondoc.IsFileName(path) }

// owner returns the function own of the folder of documents with this name, or nil if no folder of documents has this
// name.
func owner(name string) func(path string, folder bool) bool {
	for _, d := range documents {
		if d.name == name {
			return d.own
		}
	}
	return nil
}

// AddDocuments adds the folder of another kind of document; see kind.Register. owns is a function that reports whether
// the store itself uses a path in that folder for a file or for a folder. The path has slashes.
func AddDocuments(name string, owns func(path string, folder bool) bool) {
	documents = append(documents, documentFolder{name, owns})
	list = append(list, place{name, folder | top | sole})
}

// Documents returns the folders in which each file is a document, and the file is named after the document's id.
func Documents() []string {
	names := make([]string, len(documents))
	for i, d := range documents {
		names[i] = d.name
	}
	return names
}

// IsDocuments reports whether a folder of a store is one of Documents.
func IsDocuments(rel string) bool { return owner(rel) != nil }

// IsTaken reports whether the store uses the name for a file or folder directly in its folder. It ignores case.
func IsTaken(name string) bool {
	return slices.ContainsFunc(list, func(p place) bool {
		first, _, _ := strings.Cut(p.path, "/")
		return strings.EqualFold(first, name)
	})
}

func vectorFiles() (list []place) {
	for _, name := range vector.Files() {
		list = append(list, place{name, named})
	}
	return list
}

// isPlace reports whether a path is that of a place with all flags in u.
func isPlace(rel string, u use) bool {
	return slices.ContainsFunc(list, func(p place) bool { return p.path == rel && p.use&u == u })
}

// paths returns the paths of the places that have all flags in u and no flag in not.
func paths(u, not use) (rels []string) {
	for _, p := range list {
		if p.use&u == u && p.use&not == 0 {
			rels = append(rels, p.path)
		}
	}
	return rels
}

// TopFiles returns the names of the files directly in a store's folder that are parts of the store.
func TopFiles() []string { return paths(top, folder) }

// TopFolders returns the names of the folders directly in a store's folder that are parts of the store.
func TopFolders() []string { return paths(top|folder, 0) }

// IsTopFile reports whether a name in the store's folder is one of TopFiles.
func IsTopFile(name string) bool { return isPlace(name, top) && !isPlace(name, folder) }

// IsTopFolder reports whether a name in the store's folder is one of TopFolders.
func IsTopFolder(name string) bool { return isPlace(name, top|folder) }

// Inside returns the folders that the store uses within one of its folders.
func Inside(rel string) (rels []string) {
	for _, p := range list {
		if p.use&folder != 0 && path.Dir(p.path) == rel {
			rels = append(rels, p.path)
		}
	}
	return rels
}

// Optional reports whether a store can be opened even if something other than a folder is at the path of this folder.
func Optional(rel string) bool { return isPlace(rel, folder|optional) }

// Sole reports whether the files in a folder may be the only copy of some data.
func Sole(rel string) bool { return isPlace(rel, folder|sole) }

// Named returns the files that a store opens under fixed names.
func Named() []string { return paths(named, 0) }

// OfTheMachine reports whether a path is that of a file that records the processes that use a store on this machine.
func OfTheMachine(rel string) bool {
	return isPlace(rel, machine) || path.Dir(rel) == "wal" && strings.HasSuffix(rel, ".lock")
}

// InLog reports whether the log uses this name in wal/ for something other than a segment.
func InLog(name string) bool { return name != "" && isAny("wal/"+name) && !isPlace("wal/"+name, note) }

func isAny(rel string) bool { return isPlace(rel, 0) }
