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

// Options says how files of the store are made.
type Options struct {
	FS         vfs.FS
	FileMode   fs.FileMode // 0 means 0600
	FolderMode fs.FileMode
}

func (o *Options) fileMode() fs.FileMode { return cmp.Or(o.FileMode, 0o600) }

// Set finds out whether a file that was set aside is about one of some
// memories, assemblies, or scopes of working memory, or holds one.
type Set struct {
	kind    *kind.Kind
	ids     map[string]bool
	names   names    // of their files
	parked  names    // likewise, as tmp/parked/ has them, of a kind whose documents are in folders
	members patterns // their id as a document's first member has it
	plain   patterns // ids that are long enough not to be met by chance
	content contents // pieces of what they said
	learns  int      // how many pieces of one content are learned
	// the sums of documents of an opaque kind, which say no id
	documents map[[32]byte]bool

	// not nil: only these versions; see Redacted
	redacted func(at segment.LSN, key string) bool

	// Log is that of the store: of a piece of it without a start, which has entries of others
	// as well, these are kept.
	Log    segment.Geometry
	unread []Unread
	copies map[string]string // archived segments in quarantine that may hold it, by name, and why

	unwiped  []error  // what was not overwritten: *vfs.UnwipedError
	unlinked []string // likewise, since a process has it open, or that cannot be told
}

// Unwiped is what PurgeQuarantine and PurgeParked could not overwrite: each is an
// *vfs.UnwipedError. What has another name is gone from the store, the rest stays.
func (t *Set) Unwiped() []error { return t.unwiped }

// Unread is a file in quarantine, or a parked one, that may hold it: whether to keep it is for its user to decide.
type Unread struct {
	Path string // in the store
	Why  string // a part of it is in no sound entry of the log, or cannot be read, or it mentions it
}

// Lost are the archived segments that PurgeQuarantine removed because a part of them cannot be read, and
// may hold it. They are history alone, and a repair has kept what is sound of them in the archive.
func (t *Set) Lost() (list []Unread) {
	for name, why := range t.copies {
		list = append(list, Unread{"quarantine/" + name, why})
	}
	slices.SortFunc(list, func(a, b Unread) int { return strings.Compare(a.Path, b.Path) })
	return list
}

func (t *Set) doubt(name, why string) {
	if t.copies == nil {
		t.copies = map[string]string{}
	}
	t.copies[name] = why
}

// Unread are the files that may hold it.
func (t *Set) Unread() []Unread { return t.unread }

func (t *Set) ask(folder, name, why string) {
	in := "quarantine/"
	if filepath.Base(folder) == "parked" {
		in = "tmp/parked/"
	}
	t.unread = append(t.unread, Unread{in + name, why})
}

// rare is how long an id must be for its bare bytes to mean it.
const rare = 6

// Of are those of some documents of a kind; the ids of scopes are their keys.
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
			if k.Opaque { // its documents do not say their ids
				break
			}
			t.members.add(append([]byte(`"`+k.IDName+`":`+space), quoted...))
		}
		if k == kind.Scopes {
			// What the log says of it has no document that names it: its key stands before
			// the first byte of a record. A key alone may be the beginning of another one.
			t.members.add([]byte(k.Key(id) + "\x01"))
		} else if len(id) >= rare {
			t.plain.add([]byte(id))
			t.plain.add(bytes.Trim(quoted, `"`))
		}
	}
	return t
}

// Stands reports whether a file in memories/, or in assemblies/, has the name of one of theirs.
func (t *Set) Stands(name string) bool { return t.names.all[name] }

// What quarantine puts before and behind a file's name. A dash or a dot alone tells
// nothing: work-notes.json and notes.json.json are other memories' than notes.json.
var (
	beforeName = regexp.MustCompile(`^((([0-9a-f]{16}|unreadable)-)*|.*@)$`)
	behindName = regexp.MustCompile(`^((\.[0-9]+)?(\.(lost|why))?(\.[0-9]+)?(\.note\.json)?(\.part)?(\.purged)?|@.*)$`)
)

// Named reports whether a file, also in quarantine/ or tmp/parked/, was called after one
// of the memories' files.
func (t *Set) Named(name string) (is bool) {
	for at := range len(name) {
		if t.names.at(name[at:], func(n int) bool {
			is = beforeName.MatchString(name[:at]) && behindName.MatchString(name[at+n:])
			return !is
		}); is {
			return true
		}
	}
	return false
}

// outline is what says whose a document is.
type outline struct {
	ID       *string         `json:"id"`
	Assembly *string         `json:"assembly_id"`
	Members  json.RawMessage `json:"memory_ids"`
	Content  *string         `json:"content"`
	Scope    *string         `json:"scope"`
	From     string          `json:"from"` // of a note
}

// about reports whether a document, with an id, is one of these: as package importer
// a memory may name the assembly that it belongs to.
func (t *Set) about(doc *outline) bool {
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

// Holds reports whether a document, whole or broken, is one of theirs: what it says of
// others is its own.
func (t *Set) Holds(b []byte) bool {
	var doc outline
	if json.Unmarshal(b, &doc) == nil {
		return t.about(&doc)
	}
	return t.members.in(b)
}

// inPath reports whether bytes have the path of one of their files, with this between folder and name.
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

// In reports whether bytes are about one of them. A whole document is about whose id
// it has, an assembly also about its members; anything else about whom it names.
func (t *Set) In(b []byte) bool {
	var doc outline
	if json.Unmarshal(b, &doc) == nil && (doc.ID != nil || doc.Assembly != nil || doc.From != "" ||
		doc.Scope != nil && t.kind == kind.Scopes) {
		if doc.From != "" { // a note has the id of what it is about
			return !t.elsewhere(doc.From) && (doc.ID != nil && t.ids[*doc.ID] || t.from(doc.From) ||
				!t.kind.Tree() && t.Named(filepath.Base(filepath.FromSlash(doc.From))))
		}
		return t.about(&doc) || t.among(&doc, b)
	}
	for _, slash := range []string{"/", `\/`, `\\`} {
		if t.inPath(b, slash) {
			return true
		}
	}
	return t.members.in(b) || t.plain.in(b)
}

// among reports whether a document is an assembly that has one of the memories: its
// composite is made of that one's embedding, and older forms hold whole copies.
func (t *Set) among(doc *outline, b []byte) bool {
	if t.kind != kind.Memories || doc.Content != nil || doc.Assembly == nil && doc.Members == nil {
		return false
	}
	var ids []string
	return t.members.in(b) || json.Unmarshal(doc.Members, &ids) == nil && slices.ContainsFunc(ids,
		func(id string) bool { return t.ids[id] })
}

// elsewhere reports whether a path in the store is in the folder of another kind, where
// names mean other ids.
func (t *Set) elsewhere(from string) bool {
	dir, _, _ := strings.Cut(from, "/")
	return dir != t.kind.Folder && slices.Contains(kind.Folders(), dir)
}
