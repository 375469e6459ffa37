package repair

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// Traces finds out whether a file that was set aside is about one of some
// memories, or holds one.
type Traces struct {
	ids     map[string]bool
	names   []string // of their files
	members [][]byte // their id as a document's first member has it
	plain   [][]byte // ids that are long enough not to be met by chance
	content [][]byte // pieces of what they said

	// Log is that of the store: of a piece of it without a start, which has entries of others
	// as well, these are kept.
	Log    segment.Geometry
	unread []string // pieces that only mention it, or cannot be read whole: their owner decides
}

// Unread are files in quarantine that may hold it: a part cannot be read, or they mention it.
func (t *Traces) Unread() []string { return t.unread }

// rare is how long an id must be for its bare bytes to mean it.
const rare = 6

// TracesOf are those of some memories.
func TracesOf(ids []string) *Traces {
	t := &Traces{ids: map[string]bool{}}
	for _, id := range ids {
		t.ids[id] = true
		t.names = append(t.names, docfile.FileName(id))
		quoted := append(docfile.AppendEscaped([]byte(`"`), id), '"')
		for _, head := range []string{`"id": `, `"id":`} {
			t.members = append(t.members, append([]byte(head), quoted...))
		}
		if len(id) >= rare {
			t.plain = append(t.plain, []byte(id), bytes.Trim(quoted, `"`))
		}
	}
	return t
}

// Stands says whether a file in memories/ has the name of one of the memories' files.
func (t *Traces) Stands(name string) bool { return slices.Contains(t.names, name) }

// What quarantine puts before and behind a file's name. A dash or a dot alone tells
// nothing: work-notes.json and notes.json.json are other memories' than notes.json.
var (
	beforeName = regexp.MustCompile(`^((([0-9a-f]{16}|unreadable)-)*|.*@)$`)
	behindName = regexp.MustCompile(`^((\.[0-9]+)?(\.(lost|why))?(\.[0-9]+)?(\.note\.json)?(\.part)?(\.purged)?|@.*)$`)
)

// Named says whether a file, also in quarantine/ or tmp/parked/, was called after one
// of the memories' files.
func (t *Traces) Named(name string) bool {
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

// Holds says whether a document, whole or broken, is one of the memories': what it
// says of others is its own.
func (t *Traces) Holds(b []byte) bool {
	var doc struct {
		ID *string `json:"id"`
	}
	if json.Unmarshal(b, &doc) == nil {
		return doc.ID != nil && t.ids[*doc.ID]
	}
	return has(b, t.members)
}

func has(b []byte, list [][]byte) bool {
	return slices.ContainsFunc(list, func(part []byte) bool { return bytes.Contains(b, part) })
}

// In says whether bytes are about one of the memories. A whole document is about
// whose id it has; anything else about whom it names.
func (t *Traces) In(b []byte) bool {
	var doc struct {
		ID   *string `json:"id"`
		From string  `json:"from"` // of a note
	}
	if json.Unmarshal(b, &doc) == nil && (doc.ID != nil || doc.From != "") {
		return doc.ID != nil && t.ids[*doc.ID] || doc.From != "" && t.Named(filepath.Base(filepath.FromSlash(doc.From)))
	}
	for _, name := range t.names {
		for _, where := range []string{"memories/", `memories\/`, `memories\\`} {
			if bytes.Contains(b, []byte(where+name)) {
				return true
			}
		}
	}
	return has(b, t.members) || has(b, t.plain)
}

// doomedSuffix marks what is being overwritten: half of it gone, nothing would
// tell whose it was.
const doomedSuffix = ".purged"

// purgeMost is the largest file that is looked into.
const purgeMost = 2 << 30

// PurgeQuarantine overwrites and removes what was set aside of some memories:
// their files, the notes about them, and what else names them, as a whole (an index, the
// copy of a segment). A segment, or a torn tail, keeps the sound entries of others. From the undo manifests go the lines that speak of these;
// the rest of such a repair can still be undone. flush.lock is held. It may be
// killed anywhere and done again.
func PurgeQuarantine(ctx context.Context, dir string, t *Traces, o Options) (removed []string, err error) {
	folder := filepath.Join(dir, "quarantine")
	names, err := o.FS.ReadDir(folder)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	away, found, reduced := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var manifests []string
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		if strings.HasPrefix(name, manifestHead) && strings.HasSuffix(name, manifestTail) {
			manifests = append(manifests, name)
			continue
		}
		// Whose a vector is nothing in its file tells; they can always be made again.
		is := strings.HasPrefix(originOf(o.FS, folder, name), vector.Folder+"/")
		vectors := is
		if !vectors {
			var err error
			if is, err = t.inFile(o.FS, folder, name); err != nil {
				return removed, err
			}
		}
		if is && !vectors && !t.Named(name) && !strings.HasSuffix(name, doomedSuffix) {
			if ok, err := t.keepOthers(o, folder, name); err != nil {
				return removed, err
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
			return removed, fmt.Errorf("rewriting quarantine/%s: %w", name, err)
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
				return removed, fmt.Errorf("taking away quarantine/%s: %w", name, err)
			}
			doomed = append(doomed, path+doomedSuffix)
			removed = append(removed, "quarantine/"+name)
		}
	}
	if len(doomed) == 0 {
		return removed, nil
	}
	if err := o.FS.SyncDir(folder); err != nil {
		return removed, err
	}
	for _, path := range doomed {
		if err := vfs.Wipe(o.FS, path); err != nil {
			return removed, fmt.Errorf("overwriting what was in quarantine: %w", err)
		}
	}
	return removed, o.FS.SyncDir(folder)
}

func (t *Traces) inFile(fsys vfs.FS, folder, name string) (bool, error) {
	if t.Named(name) {
		return true, nil
	}
	path := filepath.Join(folder, name)
	info, err := fsys.Stat(path)
	if gone(err) || err == nil && !info.Mode.IsRegular() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	b, err := vfs.ReadFile(fsys, path, purgeMost)
	if err != nil {
		return false, err
	}
	if plain, whole, ok := wal.InflateCopy(b); ok {
		if !whole && !t.In(plain) {
			t.unread = append(t.unread, name)
			return false, nil
		}
		b = plain
	} else if ofMemory(fsys, folder, name) {
		return t.Holds(b), nil
	}
	if !t.In(b) {
		return false, nil
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
func HasAside(fsys vfs.FS, dir string, t *Traces) (bool, error) {
	for _, folder := range []string{filepath.Join(dir, "quarantine"), filepath.Join(dir, "tmp", "parked")} {
		names, err := sortedNames(fsys, folder)
		if err != nil && !gone(err) {
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

// ofMemory says whether what was set aside, or parked, is a memory's file.
func ofMemory(fsys vfs.FS, folder, name string) bool {
	return strings.HasPrefix(name, "memories@") || strings.HasPrefix(originOf(fsys, folder, name), "memories/")
}

// originOf is where what was set aside stood, as its note says; "" where it has none.
func originOf(fsys vfs.FS, folder, name string) string {
	var note struct {
		From string `json:"from"`
	}
	b, err := vfs.ReadFile(fsys, filepath.Join(folder, name+".note.json"), manifestMost)
	if err != nil || json.Unmarshal(b, &note) != nil {
		return ""
	}
	return note.From
}

// purgeManifest takes the lines about what went out of an undo manifest.
func (t *Traces) purgeManifest(dir, name string, away map[string]bool, o Options) (changed bool, err error) {
	path := filepath.Join(dir, "quarantine", name)
	b, err := vfs.ReadFile(o.FS, path, manifestMost)
	if err != nil {
		return false, err
	}
	about := func(c change) bool {
		kept := func(s *stands) bool { return s != nil && (away[s.Kept] || t.Named(filepath.Base(s.Kept))) }
		return t.ids[c.ID] && c.ID != "" || t.Named(filepath.Base(filepath.FromSlash(c.Path))) || kept(c.Before) || kept(c.After)
	}
	var out []byte
	for line := range bytes.Lines(b) {
		var c change
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
	return true, vfs.WriteDurable(o.FS, temp, path, out, o.fileMode())
}

// PurgeParked overwrites and removes what lies in tmp/parked/ of some memories:
// files that somebody had open when they were displaced. Those that still are
// cannot go, for he may save into them; they are returned.
func PurgeParked(dir string, t *Traces, o Options) (removed, held []string, err error) {
	folder := filepath.Join(dir, "tmp", "parked")
	names, err := o.FS.ReadDir(folder)
	if gone(err) {
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
		ok, err := wipeAlone(o.FS, filepath.Join(folder, name))
		switch {
		case err != nil:
			return removed, held, fmt.Errorf("overwriting %s: %w", rel, err)
		case ok:
			removed = append(removed, rel)
		default:
			held = append(held, rel)
		}
	}
	if len(removed) > 0 {
		err = o.FS.SyncDir(folder)
	}
	return removed, held, err
}

// wipeAlone overwrites and removes a file that nobody else has open.
func wipeAlone(fsys vfs.FS, path string) (ok bool, err error) {
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if gone(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	ok, err = f.Lease()
	if errors.Is(err, errors.ErrUnsupported) {
		ok, err = true, nil // where there are no leases nobody can tell
	}
	info, serr := f.Stat()
	if err = errors.Join(err, serr); ok && err == nil && info.Nlink <= 1 { // else it is somebody else's as well
		err = vfs.Zero(f, 0)
	}
	if ok && err == nil {
		err = fsys.Remove(path)
	}
	return ok, errors.Join(err, f.Close())
}
