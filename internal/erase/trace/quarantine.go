package trace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// doomedSuffix marks what is being overwritten: half of it gone, nothing would
// tell whose it was.
const doomedSuffix = ".purged"

// PurgeQuarantine overwrites and removes what was set aside of some memories:
// their files, the notes about them, and what else names them, as a whole (an index, the
// copy of a segment). A segment, or a torn tail, keeps the sound entries of others; one with bytes that may be
// theirs and are in no sound entry is left to its user: see Unread. An archived segment that cannot be read
// completely goes: see Lost. So does the undo file of an older version that names one of these: nothing
// reads it any more. It may be killed anywhere and done again.
//
// An index or vectors that were set aside a moment ago may still be mapped: unlinked are those that
// went without being overwritten, since a process has them open, or that cannot be told.
func PurgeQuarantine(ctx context.Context, _ *wal.Held, dir string, t *Set,
	o Options) (removed, unlinked []string, err error) {
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
	var undos []string
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return removed, unlinked, err
		}
		if docfile.IsUndo(name) {
			undos = append(undos, name)
			continue
		}
		if strings.HasSuffix(name, doomedSuffix) {
			continue
		}
		// Whose a vector is nothing in its file tells; they can always be made again.
		is := strings.HasPrefix(originOf(o.FS, folder, name), vector.Folder+"/")
		if !is {
			var left []byte
			if is, left, err = t.inFile(o.FS, folder, name); err != nil {
				return removed, unlinked, err
			}
			if left != nil {
				path := filepath.Join(folder, name)
				// the purge that finds it overwrites it
				if err := t.replace(o, path+".reduced"+doomedSuffix, path, left); err != nil {
					return removed, unlinked, err
				}
				removed = append(removed, "quarantine/"+name)
				reduced[name] = true
			}
		}
		if found[name] = is; is {
			away["quarantine/"+name] = true
			away["quarantine/"+strings.TrimSuffix(name, ".note.json")] = true
		}
		if _, doubtful := t.copies[name]; doubtful {
			away["quarantine/"+name] = true
		}
	}
	var doomed []string
	for _, name := range undos { // first: an undo file tells what goes with one of them while that is there
		path := filepath.Join(folder, name)
		is, err := t.inUndo(path, away, o)
		if err == nil && is {
			err = o.FS.Rename(path, path+doomedSuffix)
			doomed, removed = append(doomed, path+doomedSuffix), append(removed, "quarantine/"+name)
		}
		if err != nil {
			return removed, unlinked, fmt.Errorf("taking away quarantine/%s: %w", name, err)
		}
	}
	if len(doomed) > 0 {
		if err := o.FS.SyncDir(folder); err != nil {
			return removed, unlinked, err
		}
	}
	for _, name := range names {
		base := strings.TrimSuffix(strings.TrimSuffix(name, ".part"), ".note.json")
		path := filepath.Join(folder, name)
		switch {
		case docfile.IsUndo(name):
		case strings.HasSuffix(name, doomedSuffix):
			doomed = append(doomed, path)
		case reduced[name], reduced[base] && !found[name]:
		case away["quarantine/"+name], away["quarantine/"+base]:
			if info, err := o.FS.Stat(path); err == nil && !info.Mode.IsRegular() {
				continue // a user's folder or link that was in the way
			}
			if err := o.FS.Rename(path, path+doomedSuffix); err != nil {
				return removed, unlinked, fmt.Errorf("taking away quarantine/%s: %w", name, err)
			}
			doomed = append(doomed, path+doomedSuffix)
			if _, doubtful := t.copies[base]; !doubtful {
				removed = append(removed, "quarantine/"+name)
			}
		}
	}
	t.unread = slices.DeleteFunc(t.unread, func(u Unread) bool {
		return slices.Contains(doomed, filepath.Join(dir, filepath.FromSlash(u.Path)+doomedSuffix))
	})
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

// called reports whether what was set aside, or parked, is called after one of their files.
func (t *Set) called(fsys vfs.FS, folder, name string) bool {
	if t.kind.Tree() { // the last element of a path says nothing
		return t.calledByPath(fsys, folder, name)
	}
	return t.Named(name) && !t.elsewhere(whence(fsys, folder, name))
}

// calledByPath is called for a kind whose documents are in folders.
func (t *Set) calledByPath(fsys vfs.FS, folder, name string) bool {
	if rest, ok := strings.CutPrefix(name, t.kind.Folder+"@"); ok {
		parked, _, _ := strings.Cut(rest, "@")
		return t.parked.all[parked]
	}
	return t.from(whence(fsys, folder, name))
}

// from reports whether a path in the store is that of one of them.
func (t *Set) from(rel string) bool {
	return kind.At(rel) == t.kind && t.names.all[t.kind.Below(rel)]
}

// inFile reports whether a file has one of them. left is what can be kept of it, a piece of the log that has entries of
// others too. What its user has to decide is added to unread.
func (t *Set) inFile(fsys vfs.FS, folder, name string) (is bool, left []byte, err error) {
	if t.redacted != nil {
		return t.redactedFile(fsys, folder, name)
	}
	if t.called(fsys, folder, name) {
		return true, nil, nil
	}
	path := filepath.Join(folder, name)
	info, err := fsys.Stat(path)
	if places.Gone(err) || err == nil && !info.Mode.IsRegular() {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	b, err := vfs.ReadFile(fsys, path, places.CopyMost)
	if errors.Is(err, errs.ErrTooLarge) { // none of the store's; what it says its owner must know
		t.ask(folder, name, "it is larger than "+human.Bytes(places.CopyMost)+", and was not read")
		return false, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	from := whence(fsys, folder, name)
	plain, whole, archived := past.InflateCopy(b)
	if archived {
		b = plain
	}
	if p, ok := t.pieceOf(name, from, b); ok && (!archived || whole) {
		f := t.look(p)
		switch {
		case f.unknown != "" && archived && filepath.Base(folder) == "quarantine":
			t.doubt(name, f.unknown)
		case f.unknown != "":
			t.ask(folder, name, f.unknown)
		}
		if !f.has || archived {
			return f.has, nil, nil
		}
		return true, f.left, nil
	}
	if archived {
		is = t.proof(b)
		switch {
		case is:
		case filepath.Base(folder) == "quarantine":
			t.doubt(name, "a part of it cannot be read")
		default:
			t.ask(folder, name, "a part of it cannot be read")
		}
		return is, nil, nil
	}
	if strings.HasPrefix(from, t.kind.Folder+"/") {
		return t.Holds(b), nil, nil
	}
	if t.kind.Opaque && kind.At(from) == nil { // the pool in tmp/, or a place that nothing says
		if t.documents[sha256.Sum256(b)] {
			return true, nil, nil
		}
		if t.content.in(b) {
			t.ask(folder, name, mentionsContent)
			return false, nil, nil
		}
	}
	if t.kind != kind.Memories && t.elsewhere(from) || !t.In(b) {
		return false, nil, nil // what a memory says of assemblies or scopes is its own
	}
	var doc outline
	// parked: an older version of one that is there
	if strings.HasPrefix(name, kind.Assemblies.Folder+"@") && json.Unmarshal(b, &doc) == nil {
		return true, nil, nil
	}
	// An index, or what cannot be told, holds other memories too, perhaps as their only copy:
	// a word in it is no proof that it holds this one.
	if !t.proof(b) {
		t.ask(folder, name, "or only mention it, and others with it")
		return false, nil, nil
	}
	return true, nil, nil
}

// HasAside reports whether anything in quarantine or among the parked files is about one
// of the memories.
func HasAside(fsys vfs.FS, dir string, t *Set) (bool, error) {
	for _, folder := range []string{filepath.Join(dir, "quarantine"), filepath.Join(dir, "tmp", "parked")} {
		names, err := places.Names(fsys, folder)
		if err != nil && !places.Gone(err) {
			return false, err
		}
		for _, name := range names {
			if is, _, err := t.inFile(fsys, folder, name); is || err != nil {
				return is, err
			}
		}
	}
	return false, nil
}

// whence is where what was set aside, or parked, stood; "" where nothing says so.
func whence(fsys vfs.FS, folder, name string) string {
	for _, dir := range kind.Folders() {
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
	b, err := vfs.ReadText(fsys, filepath.Join(folder, name+".note.json"), places.ManifestMost)
	if err != nil || json.Unmarshal(b, &note) != nil {
		return ""
	}
	return note.From
}

// undoLine is what a line of an undo file says of the change that it records.
type undoLine struct {
	Path   string     `json:"path"`
	ID     string     `json:"id"`
	Before *undoKept  `json:"before"`
	After  *undoKept  `json:"after"`
	Ends   []undoLine `json:"ends"`
}

// undoKept names the copy of a file.
type undoKept struct {
	Kept string `json:"kept"`
}

// inUndo reports whether the undo file of an older version says something of one of them, or of what goes with them.
func (t *Set) inUndo(path string, away map[string]bool, o Options) (bool, error) {
	b, err := vfs.ReadFile(o.FS, path, places.ManifestMost)
	if errors.Is(err, errs.ErrTooLarge) || errors.Is(err, vfs.ErrNotRegular) {
		return false, nil // no version wrote this
	}
	if err != nil {
		return false, err
	}
	var about func(l undoLine) bool
	about = func(l undoLine) bool {
		other := t.elsewhere(l.Path)
		kept := func(s *undoKept) bool {
			return s != nil && (away[s.Kept] || t.Named(filepath.Base(s.Kept)) && !other)
		}
		return !other && (t.ids[l.ID] && l.ID != "" || t.Named(filepath.Base(filepath.FromSlash(l.Path)))) ||
			kept(l.Before) || kept(l.After) || slices.ContainsFunc(l.Ends, about)
	}
	for line := range bytes.Lines(b) {
		var l undoLine
		if err := json.Unmarshal(line, &l); err != nil && t.In(line) || err == nil && about(l) {
			return true, nil
		}
	}
	return false, nil
}

// PurgeParked overwrites and removes the files of some memories in tmp/parked/: files that somebody
// had open when they were displaced. Those that still are cannot go, for he may save into them;
// they are returned.
func PurgeParked(_ *wal.Held, dir string, t *Set, o Options) (removed, held []string, err error) {
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
		is, _, err := t.inFile(o.FS, folder, name)
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
