package trace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/journal"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
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
	letter  byte   // record.Memory, record.Assembly or record.Working
	folder  string // of their files
	ids     map[string]bool
	names   []string // of their files
	members [][]byte // their id as a document's first member has it
	plain   [][]byte // ids that are long enough not to be met by chance
	content [][]byte // pieces of what they said

	// Log is that of the store: of a piece of it without a start, which has entries of others
	// as well, these are kept.
	Log    segment.Geometry
	unread []string // pieces that only mention it, or cannot be read whole: their owner decides

	unwiped  []error  // what was not overwritten: *vfs.UnwipedError
	unlinked []string // likewise, for somebody has it open or nobody can tell
}

// Unwiped is what PurgeQuarantine and PurgeParked could not overwrite: each is an
// *vfs.UnwipedError. What has another name is gone from the store, the rest stays.
func (t *Set) Unwiped() []error { return t.unwiped }

// Unread are files in quarantine that may hold it: a part cannot be read, or they mention it.
func (t *Set) Unread() []string { return t.unread }

// rare is how long an id must be for its bare bytes to mean it.
const rare = 6

// Of are those of some memories (record.Memory), assemblies (record.Assembly), or
// scopes, whose ids are their keys (record.Working).
func Of(letter byte, ids []string) *Set {
	t := &Set{letter: letter, folder: "memories", ids: map[string]bool{}}
	head := "id"
	switch letter {
	case record.Assembly:
		t.folder, head = "assemblies", "assembly_id"
	case record.Working:
		t.folder, head = places.Working, "scope"
	}
	for _, id := range ids {
		t.ids[id] = true
		t.names = append(t.names, docfile.FileName(id))
		quoted := append(docfile.AppendEscaped([]byte(`"`), id), '"')
		for _, space := range []string{" ", ""} {
			t.members = append(t.members, append([]byte(`"`+head+`":`+space), quoted...))
		}
		if letter == record.Working {
			// What the log says of it has no document that names it: its key stands before
			// the first byte of a record. A key alone may be the beginning of another one.
			t.members = append(t.members, []byte(string(rune(letter))+id+"\x01"))
		} else if len(id) >= rare {
			t.plain = append(t.plain, []byte(id), bytes.Trim(quoted, `"`))
		}
	}
	return t
}

// Stands says whether a file in memories/, or in assemblies/, has the name of one of theirs.
func (t *Set) Stands(name string) bool { return slices.Contains(t.names, name) }

// What quarantine puts before and behind a file's name. A dash or a dot alone tells
// nothing: work-notes.json and notes.json.json are other memories' than notes.json.
var (
	beforeName = regexp.MustCompile(`^((([0-9a-f]{16}|unreadable)-)*|.*@)$`)
	behindName = regexp.MustCompile(`^((\.[0-9]+)?(\.(lost|why))?(\.[0-9]+)?(\.note\.json)?(\.part)?(\.purged)?|@.*)$`)
)

// Named says whether a file, also in quarantine/ or tmp/parked/, was called after one
// of the memories' files.
func (t *Set) Named(name string) bool {
	for _, n := range t.names {
		for at := strings.Index(name, n); at >= 0; {
			if beforeName.MatchString(name[:at]) && behindName.MatchString(name[at+len(n):]) {
				return true
			}
			next := strings.Index(name[at+1:], n)
			if next < 0 {
				break
			}
			at += 1 + next
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

// about says whether a document, with an id, is one of these: as package importer
// a memory may name the assembly that it belongs to.
func (t *Set) about(doc *outline) bool {
	if t.letter == record.Working {
		return doc.Scope != nil && doc.ID == nil && t.ids[*doc.Scope]
	}
	group := (doc.Assembly != nil || doc.Members != nil) && doc.Content == nil
	id := doc.ID
	if group && doc.Assembly != nil {
		id = doc.Assembly
	}
	return group == (t.letter == record.Assembly) && id != nil && t.ids[*id]
}

// Holds says whether a document, whole or broken, is one of theirs: what it says of
// others is its own.
func (t *Set) Holds(b []byte) bool {
	var doc outline
	if json.Unmarshal(b, &doc) == nil {
		return t.about(&doc)
	}
	return has(b, t.members)
}

func has(b []byte, list [][]byte) bool {
	return slices.ContainsFunc(list, func(part []byte) bool { return bytes.Contains(b, part) })
}

// In says whether bytes are about one of them. A whole document is about whose id
// it has, an assembly also about its members; anything else about whom it names.
func (t *Set) In(b []byte) bool {
	var doc outline
	if json.Unmarshal(b, &doc) == nil && (doc.ID != nil || doc.Assembly != nil || doc.From != "" || doc.Scope != nil && t.letter == record.Working) {
		if doc.From != "" { // a note has the id of what it is about
			return !t.elsewhere(doc.From) && (doc.ID != nil && t.ids[*doc.ID] || t.Named(filepath.Base(filepath.FromSlash(doc.From))))
		}
		return t.about(&doc) || t.among(&doc, b)
	}
	for _, name := range t.names {
		for _, slash := range []string{"/", `\/`, `\\`} {
			if bytes.Contains(b, []byte(t.folder+slash+name)) {
				return true
			}
		}
	}
	return has(b, t.members) || has(b, t.plain)
}

// among says whether a document is an assembly that has one of the memories: its
// composite is made of that one's embedding, and older forms hold whole copies.
func (t *Set) among(doc *outline, b []byte) bool {
	if t.letter != record.Memory || doc.Content != nil || doc.Assembly == nil && doc.Members == nil {
		return false
	}
	var ids []string
	return has(b, t.members) || json.Unmarshal(doc.Members, &ids) == nil && slices.ContainsFunc(ids, func(id string) bool { return t.ids[id] })
}

// elsewhere says whether a path in the store is in the folder of another kind, where
// names mean other ids.
func (t *Set) elsewhere(from string) bool {
	dir, _, _ := strings.Cut(from, "/")
	return dir != t.folder && slices.Contains(document.Folders, dir)
}

// doomedSuffix marks what is being overwritten: half of it gone, nothing would
// tell whose it was.
const doomedSuffix = ".purged"

// PurgeQuarantine overwrites and removes what was set aside of some memories:
// their files, the notes about them, and what else names them, as a whole (an index, the
// copy of a segment). A segment, or a torn tail, keeps the sound entries of others. From the undo manifests go the lines that speak of these;
// the rest of such a repair can still be undone. flush.lock is held. It may be
// killed anywhere and done again.
//
// An index or vectors that were set aside a moment ago may still be mapped: unlinked
// are those that went without being overwritten, for somebody has them open or nobody can tell.
func PurgeQuarantine(ctx context.Context, dir string, t *Set, o Options) (removed, unlinked []string, err error) {
	folder := filepath.Join(dir, "quarantine")
	names, err := o.FS.ReadDir(folder)
	if places.Gone(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(names)
	away, found, reduced := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var manifests []string
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return removed, unlinked, err
		}
		if strings.HasPrefix(name, journal.Head) && strings.HasSuffix(name, journal.Tail) {
			manifests = append(manifests, name)
			continue
		}
		// Whose a vector is nothing in its file tells; they can always be made again.
		is := strings.HasPrefix(originOf(o.FS, folder, name), vector.Folder+"/")
		vectors := is
		if !vectors {
			var err error
			if is, err = t.inFile(o.FS, folder, name); err != nil {
				return removed, unlinked, err
			}
		}
		if is && !vectors && !t.called(o.FS, folder, name) && !strings.HasSuffix(name, doomedSuffix) {
			if ok, err := t.keepOthers(o, folder, name); err != nil {
				return removed, unlinked, err
			} else if ok {
				removed = append(removed, "quarantine/"+name)
				reduced[name] = true
			}
		}
		if found[name] = is; is {
			away["quarantine/"+name] = true
			away["quarantine/"+strings.TrimSuffix(name, ".note.json")] = true
		}
	}
	// The manifests first: what is kept is named there until they are.
	for _, name := range manifests {
		changed, err := t.purgeManifest(dir, name, away, o)
		if err != nil {
			return removed, unlinked, fmt.Errorf("rewriting quarantine/%s: %w", name, err)
		}
		if changed {
			removed = append(removed, "quarantine/"+name)
		}
	}
	var doomed []string
	for _, name := range names {
		base := strings.TrimSuffix(strings.TrimSuffix(name, ".part"), ".note.json")
		path := filepath.Join(folder, name)
		switch {
		case strings.HasSuffix(name, doomedSuffix):
			doomed = append(doomed, path)
		case reduced[name], reduced[base] && !found[name]:
		case away["quarantine/"+name], away["quarantine/"+base]:
			if info, err := o.FS.Stat(path); err == nil && !info.Mode.IsRegular() {
				continue // somebody's folder or link, that stood in the way
			}
			if err := o.FS.Rename(path, path+doomedSuffix); err != nil {
				return removed, unlinked, fmt.Errorf("taking away quarantine/%s: %w", name, err)
			}
			doomed = append(doomed, path+doomedSuffix)
			removed = append(removed, "quarantine/"+name)
		}
	}
	if len(doomed) == 0 {
		return removed, append(unlinked, t.unlinked...), nil
	}
	if err := o.FS.SyncDir(folder); err != nil {
		return removed, unlinked, err
	}
	for _, path := range doomed {
		name := strings.TrimSuffix(filepath.Base(path), doomedSuffix)
		if vfs.SameFile(o.FS, path, strings.TrimSuffix(path, doomedSuffix)) { // a purge was killed before it was replaced
			if err := o.FS.Remove(path); err != nil {
				return removed, unlinked, err
			}
			continue
		}
		left, wipe := false, vfs.WipeAlone
		if mappable.MatchString(name) {
			wipe = func(fsys vfs.FS, path string) (err error) { left, err = vfs.WipeUnmapped(fsys, path); return err }
		}
		err := wipe(o.FS, path)
		if left {
			unlinked = append(unlinked, "quarantine/"+name)
		}
		if err != nil && !errors.Is(err, vfs.ErrLinked) { // it is still there, under the name that says what it is
			removed = slices.DeleteFunc(removed, func(s string) bool { return s == "quarantine/"+name })
		}
		if err := vfs.Unwiped(&t.unwiped, err); err != nil {
			return removed, unlinked, fmt.Errorf("overwriting what was in quarantine: %w", err)
		}
	}
	return removed, append(unlinked, t.unlinked...), o.FS.SyncDir(folder)
}

// mappable are files that others may have mapped, under the names they have in quarantine.
var mappable = regexp.MustCompile(`-(memory_index\.([a-z0-9]+\.)?json|mapping\.(delta\.)?json|memory_vectors\.([a-z]+\.)*faiss)(\.[0-9]+)?$`)

// called says whether what was set aside, or parked, is called after one of their files.
func (t *Set) called(fsys vfs.FS, folder, name string) bool {
	return t.Named(name) && !t.elsewhere(whence(fsys, folder, name))
}

func (t *Set) inFile(fsys vfs.FS, folder, name string) (bool, error) {
	if t.called(fsys, folder, name) {
		return true, nil
	}
	path := filepath.Join(folder, name)
	info, err := fsys.Stat(path)
	if places.Gone(err) || err == nil && !info.Mode.IsRegular() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	b, err := vfs.ReadFile(fsys, path, places.CopyMost)
	if errors.Is(err, errs.ErrTooLarge) { // none of the store's; what it says its owner must know
		t.unread = append(t.unread, name)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if plain, whole, ok := wal.InflateCopy(b); ok {
		if !whole && !t.In(plain) {
			t.unread = append(t.unread, name)
			return false, nil
		}
		b = plain
	} else if from := whence(fsys, folder, name); strings.HasPrefix(from, t.folder+"/") {
		return t.Holds(b), nil
	} else if t.letter != record.Memory && t.elsewhere(from) {
		return false, nil // what a memory says of assemblies or scopes is its own
	}
	if !t.In(b) {
		return false, nil
	}
	var doc outline
	if strings.HasPrefix(name, "assemblies@") && json.Unmarshal(b, &doc) == nil { // parked: an older version of one that is there
		return true, nil
	}
	// A piece of log or index holds other memories too, perhaps as their only copy:
	// a word in it is no proof that it holds this one.
	if !t.proof(b) {
		t.unread = append(t.unread, name)
		return false, nil
	}
	return true, nil
}

// HasAside says whether anything in quarantine or among the parked files is about one
// of the memories.
func HasAside(fsys vfs.FS, dir string, t *Set) (bool, error) {
	for _, folder := range []string{filepath.Join(dir, "quarantine"), filepath.Join(dir, "tmp", "parked")} {
		names, err := places.Names(fsys, folder)
		if err != nil && !places.Gone(err) {
			return false, err
		}
		for _, name := range names {
			if is, err := t.inFile(fsys, folder, name); is || err != nil {
				return is, err
			}
		}
	}
	return false, nil
}

// whence is where what was set aside, or parked, stood; "" where nothing says so.
func whence(fsys vfs.FS, folder, name string) string {
	for _, dir := range document.Folders {
		if rest, ok := strings.CutPrefix(name, dir+"@"); ok { // see docfile.Parked
			return dir + "/" + rest
		}
	}
	for _, suffix := range []string{doomedSuffix, ".part", ".note.json"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return originOf(fsys, folder, name)
}

// originOf is where what was set aside stood, as its note says; "" where it has none.
func originOf(fsys vfs.FS, folder, name string) string {
	var note struct {
		From string `json:"from"`
	}
	b, err := vfs.ReadFile(fsys, filepath.Join(folder, name+".note.json"), places.ManifestMost)
	if err != nil || json.Unmarshal(b, &note) != nil {
		return ""
	}
	return note.From
}

// purgeManifest takes the lines about what went out of an undo manifest.
func (t *Set) purgeManifest(dir, name string, away map[string]bool, o Options) (changed bool, err error) {
	path := filepath.Join(dir, "quarantine", name)
	b, err := vfs.ReadFile(o.FS, path, places.ManifestMost)
	if err != nil {
		return false, err
	}
	about := func(c journal.Change) bool {
		other := t.elsewhere(c.Path)
		kept := func(s *journal.Stands) bool {
			return s != nil && (away[s.Kept] || t.Named(filepath.Base(s.Kept)) && !other)
		}
		return !other && (t.ids[c.ID] && c.ID != "" || t.Named(filepath.Base(filepath.FromSlash(c.Path)))) || kept(c.Before) || kept(c.After)
	}
	var out []byte
	for line := range bytes.Lines(b) {
		var c journal.Change
		if err := json.Unmarshal(line, &c); err != nil {
			if t.In(line) {
				changed = true
				continue
			}
			out = append(out, line...) // cut
			continue
		}
		if about(c) {
			changed = true
			continue
		}
		if slices.ContainsFunc(c.Ends, about) {
			changed = true
			c.Ends = slices.DeleteFunc(c.Ends, about)
			if line, err = json.Marshal(c); err != nil {
				return false, err
			}
			line = append(line, '\n')
		}
		out = append(out, line...)
	}
	if !changed {
		return false, nil
	}
	temp := filepath.Join(dir, "tmp", "purge.manifest")
	if err := vfs.MkdirAll(o.FS, filepath.Dir(temp), o.FolderMode); err != nil {
		return false, err
	}
	return true, t.replace(o, temp, path, out)
}

// PurgeParked overwrites and removes what lies in tmp/parked/ of some memories:
// files that somebody had open when they were displaced. Those that still are
// cannot go, for he may save into them; they are returned.
func PurgeParked(dir string, t *Set, o Options) (removed, held []string, err error) {
	folder := filepath.Join(dir, "tmp", "parked")
	names, err := o.FS.ReadDir(folder)
	if places.Gone(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		is, err := t.inFile(o.FS, folder, name)
		if err != nil {
			return removed, held, err
		}
		if !is {
			continue
		}
		rel := "tmp/parked/" + name
		err = vfs.WipeAlone(o.FS, filepath.Join(folder, name))
		if err == nil || errors.Is(err, vfs.ErrLinked) {
			removed = append(removed, rel)
		}
		if errors.Is(err, vfs.ErrHeld) {
			held = append(held, rel)
		} else if err := vfs.Unwiped(&t.unwiped, err); err != nil {
			return removed, held, fmt.Errorf("overwriting %s: %w", rel, err)
		}
	}
	if len(removed) > 0 {
		err = o.FS.SyncDir(folder)
	}
	return removed, held, err
}
