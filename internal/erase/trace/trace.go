package trace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Options are the file system and the modes of new files.
type Options struct {
	FS         vfs.FS
	FileMode   fs.FileMode // mode of new files; 0 means 0600
	FolderMode fs.FileMode
}

func (o *Options) fileMode() fs.FileMode { return cmp.Or(o.FileMode, 0o600) }

// Set is a set of documents of one kind that are purged: memories, assemblies, scopes of working memory or others. It
// determines whether a file contains one of these documents or belongs to one.
type Set struct {
	kind    *kind.Kind
	ids     map[string]bool
	names   names    // names of the documents' files
	parked  names    // names of the documents' files in tmp/parked/, for a kind whose documents are in subfolders
	members patterns // ids of the documents, as the first member of a document
	plain   patterns // ids that are long enough not to occur by chance
	content contents // pieces of the documents' contents
	learns  int      // number of pieces per content that are learned
	// Hashes of documents of an opaque kind, which do not contain their ids.
	documents map[[32]byte]bool

	// Reports whether the version of an entry is in the set; nil if all versions of the documents are in it. See
	// Redacted.
	redacted func(at segment.LSN, key string) bool

	// Log is the geometry of the store's log: used for a part of the log without a start, so that the entries
	// of others in it are kept.
	Log    segment.Geometry
	unread []Unread
	// Archived segments in quarantine that may contain traces, by name; the value is the reason.
	copies map[string]string

	unwiped  []error  // files that were not overwritten: each a *vfs.UnwipedError
	unlinked []string // files that were removed without being overwritten: open in a process, or this is unknown
}

// Unwiped returns an error, a *vfs.UnwipedError, for each file that PurgeQuarantine and PurgeParked could not
// overwrite. If the file has another hard link, it was removed from the store; otherwise it was not removed.
func (t *Set) Unwiped() []error { return t.unwiped }

// Unread is a file in quarantine, or a parked file, that may contain traces. The user must decide whether to keep the
// file.
type Unread struct {
	Path string // path relative to the store
	// Reason: a part of the file is in no valid entry of the log, or is unreadable, or mentions a document.
	Why string
}

// Lost returns the archived segments that PurgeQuarantine removed because they have an unreadable part that may
// contain traces. These segments contain only history, and an earlier repair has kept their readable part in the
// archive.
func (t *Set) Lost() (list []Unread) {
	for name, why := range t.copies {
		list = append(list, Unread{"quarantine/" + name, why})
	}
	slices.SortFunc(list, func(a, b Unread) int { return strings.Compare(a.Path, b.Path) })
	return list
}

func (t *Set) doubt(name, reason string) {
	if t.copies == nil {
		t.copies = map[string]string{}
	}
	t.copies[name] = reason
}

// Unread returns the files that may contain traces and about which the user must decide.
func (t *Set) Unread() []Unread { return t.unread }

func (t *Set) ask(folder, name, reason string) {
	in := "quarantine/"
	if filepath.Base(folder) == "parked" {
		in = "tmp/parked/"
	}
	t.unread = append(t.unread, Unread{in + name, reason})
}

// rare is the minimum length in bytes of an id that is assumed to identify its document wherever the id occurs.
const rare = 6

// Of returns the set of the documents of a kind with the given ids. For scopes of working memory, the ids are the keys
// of the scopes.
func Of(k *kind.Kind, ids []string) *Set {
	t := &Set{kind: k, ids: map[string]bool{}, documents: map[[32]byte]bool{}}
	t.learns = max(1, min(pieces, piecesMost/max(1, len(ids))))
	for _, id := range ids {
		t.ids[id] = true
		t.names.add(k.FileName(id))
		if k.Tree() {
			t.parked.add(docfile.ParkedName(k.FileName(id)))
		}
		quoted := append(jsondoc.AppendEscaped([]byte(`"`), id), '"')
		for _, space := range []string{" ", ""} {
			if k.Opaque { // the documents do not contain their ids
				break
			}
			t.members.add(append([]byte(`"`+k.IDName+`":`+space), quoted...))
		}
		if k == kind.Scopes {
			// In the log, no document of a scope contains its key: the key precedes the first byte of a record.
			// A key alone may be the beginning of another key.
			t.members.add([]byte(k.Key(id) + "\x01"))
		} else if len(id) >= rare {
			t.plain.add([]byte(id))
			t.plain.add(bytes.Trim(quoted, `"`))
		}
	}
	return t
}

// Stands reports whether name is the file name of one of the documents of the set. The file is in the folder of the
// documents, such as memories/.
func (t *Set) Stands(name string) bool { return t.names.all[name] }

// What the names in quarantine have before and after the name of the original file. A dash or a dot alone is
// not enough: work-notes.json and notes.json.json belong to other memories than notes.json.
var (
	beforeName = regexp.MustCompile(`^((([0-9a-f]{16}|unreadable)-)*|.*@)$`)
	behindName = regexp.MustCompile(`^((\.[0-9]+)?(\.(lost|why))?(\.[0-9]+)?(\.note\.json)?(\.part)?(\.purged)?|@.*)$`)
)

// Named reports whether a file, possibly in quarantine/ or tmp/parked/, is named after the file of one of the
// documents of the set.
func (t *Set) Named(name string) (found bool) {
	for at := range len(name) {
		if t.names.at(name[at:], func(n int) bool {
			found = beforeName.MatchString(name[:at]) && behindName.MatchString(name[at+n:])
			return !found
		}); found {
			return true
		}
	}
	return false
}

// outline has the JSON members that identify a document.
type outline struct {
	ID       *string         `json:"id"`
	Assembly *string         `json:"assembly_id"`
	Members  json.RawMessage `json:"memory_ids"`
	Content  *string         `json:"content"`
	Scope    *string         `json:"scope"`
	From     string          `json:"from"` // only a note in quarantine/ has it: former path of the file
}

// hasDocument reports whether a parsed document is in the set. It checks the type of the document as well as its
// id, because a memory that package importer wrote may name the assembly to which the memory belongs.
func (t *Set) hasDocument(doc *outline) bool {
	if t.kind.Opaque {
		return false
	}
	if t.kind == kind.Scopes {
		return doc.Scope != nil && doc.ID == nil && t.ids[*doc.Scope]
	}
	group := (doc.Assembly != nil || doc.Members != nil) && doc.Content == nil
	id := doc.ID
	if group && doc.Assembly != nil {
		id = doc.Assembly
	}
	return group == (t.kind == kind.Assemblies) && id != nil && t.ids[*id]
}

// Holds reports whether the bytes of a file, complete or damaged, are those of a document in the set. What a document
// contains about other documents does not matter.
func (t *Set) Holds(b []byte) bool {
	var doc outline
	if json.Unmarshal(b, &doc) == nil {
		return t.hasDocument(&doc)
	}
	return t.members.foundIn(b)
}

// inPath reports whether b contains the path of the file of one of the documents of the set, with slash
// between folder and name.
func (t *Set) inPath(b []byte, slash string) bool {
	folder := []byte(t.kind.Folder + slash)
	for {
		at := bytes.Index(b, folder)
		if at < 0 {
			return false
		}
		b = b[at+len(folder):]
		if most := t.names.lens; len(most) > 0 && t.names.begin(string(b[:min(len(b), most[len(most)-1])])) {
			return true
		}
	}
}

// In reports whether b is about one of the documents of the set. A complete document is about the document whose id it
// has; an assembly is also about its members. Other bytes are about every document that they name.
func (t *Set) In(b []byte) bool {
	var doc outline
	if json.Unmarshal(b, &doc) == nil && (doc.ID != nil || doc.Assembly != nil || doc.From != "" ||
		doc.Scope != nil && t.kind == kind.Scopes) {
		if doc.From != "" { // a note has the id of its subject
			return !t.elsewhere(doc.From) && (doc.ID != nil && t.ids[*doc.ID] || t.hasPath(doc.From) ||
				!t.kind.Tree() && t.Named(filepath.Base(filepath.FromSlash(doc.From))))
		}
		return t.hasDocument(&doc) || t.among(&doc, b)
	}
	for _, slash := range []string{"/", `\/`, `\\`} {
		if t.inPath(b, slash) {
			return true
		}
	}
	return t.members.foundIn(b) || t.plain.foundIn(b)
}

// among reports whether a document is an assembly that has a memory of the set as a member. The composite of such an
// assembly is made of the memory's embedding, and older formats contain whole copies of members.
func (t *Set) among(doc *outline, b []byte) bool {
	if t.kind != kind.Memories || doc.Content != nil || doc.Assembly == nil && doc.Members == nil {
		return false
	}
	var ids []string
	return t.members.foundIn(b) || json.Unmarshal(doc.Members, &ids) == nil && slices.ContainsFunc(ids,
		func(id string) bool { return t.ids[id] })
}

// elsewhere reports whether from, a path in the store, is in the folder of another kind. There the same file name
// belongs to another document.
func (t *Set) elsewhere(from string) bool {
	dir, _, _ := strings.Cut(from, "/")
	return dir != t.kind.Folder && slices.Contains(kind.Folders(), dir)
}
