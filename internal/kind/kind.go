package kind

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// Kind is a kind of document. It has the properties in which kinds differ, for code that compares, repairs, copies or
// erases documents of any kind.
type Kind struct {
	At      int    // index of the kind in Kinds
	Letter  byte   // first byte of the keys of its documents in the log
	Section int    // number of its section of the index; -1: its documents have no lines there
	Folder  string // name of the folder of its files
	Noun    string
	IDName  string // name of the member of a document that has its id
	Vectors bool   // its documents may have vectors; see VectorKind
	Paths   Paths  // maps ids to paths of files; nil: the names of package jsondoc, in one folder
	// Opaque means that the documents of this kind are any bytes, even none. They contain neither their id, which
	// follows from their path, nor their times. IDName is empty, and Decode needs an id. An edit of a file never
	// conflicts with the newest version, but replaces it.
	Opaque bool
	// Feature is the feature that a store gets with its first document of this kind. Before that, the store has no
	// folder for the kind, and its log, index, backups and checkpoint do not mention the kind. If Feature is 0, every
	// store has the folder from the beginning.
	Feature wal.Features
	// FileWins means that the last write to the disk wins. When a newer version should replace a file that is not one
	// of the known versions, the file stays and is adopted; its version has the time of the file. A folder of which
	// most files are gone was deleted on purpose, unless the folder itself is gone. The kind is Opaque.
	FileWins bool
	// MostBytes is the maximum size in bytes of a document of a kind with FileWins. A larger file is not read.
	MostBytes int64
	// FoldsAsDisk means that the Paths are compared by Fold only if the file system of the store does not distinguish
	// case.
	FoldsAsDisk bool

	// Companion returns the id of a second document, of the same kind, for data about a document that its
	// bytes cannot contain, such as its previous path. The companion is deleted and moved with the document.
	// Companion returns false if the id already belongs to a companion. nil: there are no companions, and a
	// renamed file is another document.
	Companion func(id string) (string, bool)
	// Owner is the inverse of Companion: it returns the id of the document to which a companion belongs. It returns
	// false if the id belongs to a document. Owner is set if Companion is set.
	Owner func(id string) (string, bool)
	// Moved returns the new content of the companion of a document that was moved from another path. from is the
	// document's id at that path, and last is its last version there. had is the present content of the companion,
	// empty if the document has no companion.
	Moved func(from string, last uint64, had []byte) ([]byte, error)

	// Roots returns the folders that must exist in a store, for a kind with a tree and companions. Each folder is given
	// by the id that a document at its path would have. If such a folder is missing, this is an accident, and not a
	// deletion of the documents in the folder. If Roots is nil, the kind has no such folders.
	Roots func(fsys vfs.FS, store string) ([]string, error)
	// RootsFile is the path, in the store, of the file that Roots reads.
	RootsFile string

	// Decode decodes a document of this kind. The result may share bytes with data.
	Decode func(data []byte, o DecodeOptions) (Content, error)
	// CheckLine checks the members of an index line that only lines of this kind have. It is nil if lines of this kind
	// have no such members.
	CheckLine func(line []byte, e *index.Entry) error
	// QuickLine returns true if it can determine without parsing the line that the line is valid. If it returns false,
	// or is nil, the line is parsed.
	QuickLine func(line []byte, id string, size, dims int, vectors uint64) bool
}

// The kinds of a store, in the order of the index's sections and of the folder times in a checkpoint.
var (
	Memories = &Kind{
		At: 0, Letter: record.Memory, Section: index.Memories, Folder: record.MemoryFolder, Noun: "memory", IDName: "id",
		Vectors: true,
		Decode:  decodeMemory, QuickLine: quickMemory,
	}
	Assemblies = &Kind{
		At: 1, Letter: record.Assembly, Section: index.Assemblies, Folder: record.AssemblyFolder, Noun: "assembly",
		IDName: "assembly_id", Vectors: true,
		Decode: decodeAssembly, CheckLine: checkMembers,
	}
	Notes = &Kind{
		At: 2, Letter: record.Note, Section: index.Notes, Folder: record.NoteFolder, Noun: "note", Opaque: true,
		Paths: note.System(), Feature: wal.FeatureNotes, FileWins: true, MostBytes: note.MostBytes, FoldsAsDisk: true,
		Companion: note.Companion, Owner: note.Owner, Moved: note.Moved, Roots: note.AdoptedRoots,
		RootsFile: note.AdoptedFile, Decode: decodeNote,
	}

	Kinds = []*Kind{Memories, Assemblies, Notes}

	// Scopes is the kind of the scopes of working memory. Only purges use it. Scopes have no section in the index and
	// no vectors.
	Scopes = &Kind{At: -1, Letter: record.Working, Section: -1, Folder: places.Working, Noun: "working memory",
		IDName: "scope"}
)

// Most is the maximum number of kinds. It is the size of arrays that are indexed by Kind.At.
const Most = 8

// Reserved are the letters with which no document key may begin: the letters of package record, and the letters that
// package state uses for preconditions.
const Reserved = string(record.Working) + string(record.Model) + string(record.Writer) + string(record.Purge) +
	string(record.Kept) + "benr"

// Register adds a kind. Every index then has a section for the kind, and every store that is opened or created later
// has a folder for it. Register sets k.At and k.Section. It returns an error if a letter, a folder or a noun is already
// in use. The program itself registers no kind. A test registers one before it opens a store, to show that code that
// works on documents needs only the table of kinds.
func Register(k *Kind) error {
	switch {
	case len(Kinds) == Most:
		return fmt.Errorf("%w: kind %q cannot be added: a store has at most %d kinds of documents", errs.ErrInvalid,
			k.Noun, Most)
	case k.Letter <= ' ' || k.Letter > '~' || strings.IndexByte(Reserved, k.Letter) >= 0 || Lettered(k.Letter) != nil:
		return fmt.Errorf("%w: kind %q: the letter %q is taken or not printable ASCII; choose another", errs.ErrInvalid,
			k.Noun, k.Letter)
	case k.Folder == "" || strings.ContainsAny(k.Folder, `/\`) || places.IsTaken(k.Folder):
		return fmt.Errorf("%w: kind %q: a store has another use for the folder %q; choose another", errs.ErrInvalid, k.Noun,
			k.Folder)
	case k.Opaque != (k.IDName == ""):
		return fmt.Errorf("%w: kind %q: set either Opaque or IDName, not both",
			errs.ErrInvalid, k.Noun)
	case k.Noun == "" || k.Noun == Scopes.Noun ||
		slices.ContainsFunc(Kinds, func(o *Kind) bool { return o.Noun == k.Noun }):
		return fmt.Errorf("%w: the name %q of a kind is taken or empty; choose another", errs.ErrInvalid, k.Noun)
	}
	k.At, k.Section = len(Kinds), index.AddDocuments(k.Folder)
	places.AddDocuments(k.Folder, k.paths().IsOwn)
	Kinds = append(Kinds, k)
	return nil
}

// Folders returns the names of the folders of a store in which each file is a document.
func Folders() []string { return places.Documents() }

// FoldersOf returns the names of the folders of documents that a store with the given features has; see Folders.
func FoldersOf(f wal.Features) []string {
	return slices.DeleteFunc(Folders(), func(folder string) bool {
		k := Filing(folder)
		return k != nil && k.Feature&^f != 0
	})
}

// Document returns the id of the document to which id belongs. If id is the id of a companion, such as the sidecar
// of a note, docID is the id of the companion's document; otherwise docID is id itself. companion reports whether
// id is the id of a companion.
func (k *Kind) Document(id string) (docID string, companion bool) {
	if k.Owner != nil {
		if docID, companion = k.Owner(id); companion {
			return docID, true
		}
	}
	return id, false
}

// Key returns the key of a document in the log.
func (k *Kind) Key(id string) string { return string(rune(k.Letter)) + id }

// VectorKind returns the kind under which the vectors of documents of this kind are stored, if such documents have
// vectors.
func (k *Kind) VectorKind() vector.Kind { return vector.Kind(k.At) }

// Lettered returns the kind whose log keys begin with a letter, or nil.
func Lettered(letter byte) *Kind {
	for _, k := range Kinds {
		if k.Letter == letter {
			return k
		}
	}
	return nil
}

// In returns the kind whose lines are in a section of the index, or nil.
func In(section int) *Kind {
	for _, k := range Kinds {
		if k.Section == section {
			return k
		}
	}
	return nil
}

// At returns the kind whose folder contains a path of the store, or nil.
func At(rel string) *Kind {
	for _, k := range Kinds {
		if strings.HasPrefix(rel, k.Folder+"/") {
			return k
		}
	}
	return nil
}

// Of returns the kind of the document to which a log key belongs, or nil if it is not the key of a document.
func Of(key string) *Kind {
	if len(key) < 2 {
		return nil
	}
	return Lettered(key[0])
}

// Limits are the limits for decoding documents of any kind.
type Limits struct {
	Memory   memstore.Limits
	Assembly assembly.Limits
	Note     int64 // bytes of a note
}

// DecodeOptions are the options of Decode.
type DecodeOptions struct {
	Limits     Limits
	Location   *time.Location // zone of times without a zone; nil: UTC
	ID         string         // the id that the document must have; "": any id
	IDOptional bool
	Owned      bool // the result shares no bytes with data
}

// Content is a decoded document, from which index lines and log entries are made.
type Content struct {
	ID               string
	Created, Updated *time.Time // times in the document; the caller may fill in missing ones
	Vector           []float32
	Members          []string // ids of the members of an assembly
	Memory           *memstore.Memory
	Group            *assembly.Assembly
	// returns the index line of the document; vectorID is 0 if it is the version itself
	Line func(doc []byte, vectorID int64) ([]byte, error)
}

func decodeMemory(data []byte, o DecodeOptions) (Content, error) {
	m, err := memstore.Decode(data,
		memstore.DecodeOptions{Limits: o.Limits.Memory, Location: o.Location, ID: o.ID, IDOptional: o.IDOptional,
			Owned: o.Owned})
	if err != nil {
		return Content{}, err
	}
	return Content{ID: m.ID, Created: &m.CreatedAt, Updated: &m.UpdatedAt, Vector: m.Embedding, Memory: m, Line: m.Line},
		nil
}

func decodeAssembly(data []byte, o DecodeOptions) (Content, error) {
	a, err := assembly.Decode(data,
		assembly.DecodeOptions{Limits: o.Limits.Assembly, Location: o.Location, ID: o.ID, IDOptional: o.IDOptional,
			Owned: o.Owned})
	if err != nil {
		return Content{}, err
	}
	return Content{ID: a.ID, Created: &a.CreatedAt, Updated: &a.UpdatedAt, Vector: a.CompositeEmbedding,
		Members: a.MemoryIDs, Group: a, Line: a.Line}, nil
}

func decodeNote(data []byte, o DecodeOptions) (Content, error) {
	d, err := note.Decode(data, o.ID, o.Limits.Note)
	if err != nil {
		return Content{}, err
	}
	return Content{ID: d.ID, Created: &d.Created, Updated: &d.Updated, Line: d.Line}, nil
}

// quickMemory implements Kind.QuickLine for memories. It reports whether index.QuickLine accepts the line. A replay
// reads the lines of all memories, and parsing each of them would take too long.
func quickMemory(line []byte, id string, size, dims int, vectors uint64) bool {
	return index.QuickLine(line, record.MemoryFolder, id, size, dims, vectors)
}

// checkMembers returns an error if the number of members in the index line of an assembly is not the number of ids
// that the line lists, or if one of these ids is invalid.
func checkMembers(line []byte, e *index.Entry) error {
	members, err := assembly.MembersOf(line)
	if err != nil {
		return err
	}
	if int64(len(members)) != e.MemberCount {
		return fmt.Errorf("the index line has a member count of %d, but lists %d members", e.MemberCount, len(members))
	}
	for _, id := range members {
		if err := jsondoc.CheckID("members", id, 0); err != nil {
			return err
		}
	}
	return nil
}

// Elsewhere returns the error for a file whose document has an id that does not match the file's path.
func (k *Kind) Elsewhere(id string) error {
	return fmt.Errorf("contains id %s, which belongs in %s", human.Quote(id), k.FileName(id))
}

// Date sets the creation and update times of a document that does not contain them.
func (c *Content) Date(created, updated time.Time) {
	if c.Created.IsZero() {
		*c.Created = created
	}
	if c.Updated.IsZero() {
		*c.Updated = updated
	}
}

// Conflicts reports whether an edit of a file was made from an old version of the document: the update time in the file
// is before newest, the update time of the newest version. Such an edit does not replace the newest version.
func (k *Kind) Conflicts(newest time.Time, edit *Content) bool {
	return !k.Opaque && !edit.Updated.IsZero() &&
		edit.Updated.Truncate(time.Microsecond).Before(newest.Truncate(time.Microsecond))
}

// Size returns a description of the size of the document: the number of members of an assembly, or the number of bytes
// of a memory's content. For a document of another kind it returns "a document".
func (c *Content) Size() string {
	switch {
	case c.Group != nil:
		return fmt.Sprintf("%d members", len(c.Members))
	case c.Memory != nil:
		return fmt.Sprintf("%d bytes of content", len(c.Memory.Content))
	}
	return "a document"
}

// OffsetOf returns the offset of the byte at which a document is not valid JSON. It returns -1 for any other error.
func OffsetOf(err error) int64 {
	var s *jsondoc.SyntaxError
	if errors.As(err, &s) {
		return s.Offset
	}
	return -1
}
