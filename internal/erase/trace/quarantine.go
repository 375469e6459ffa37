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

// doomedSuffix is the ending of the name of a file that a purge is overwriting. If the purge is interrupted, the next
// purge recognises the file by this ending: the remaining bytes of the file may no longer show to which document it
// belonged.
const doomedSuffix = ".purged"

// PurgeQuarantine overwrites and removes the files in quarantine that belong to the documents of t. These are files of
// the documents, and the notes about these files. Other files that name the documents (an index, the copy of a
// segment) are removed as a whole. In a segment, or a torn tail, the sound entries of other documents are kept. A
// segment or torn tail with bytes that may be from a purged document and are in no valid entry is left to the user:
// see Unread. An archived segment that cannot be read completely is removed: see Lost. The undo file of an older
// version that names one of the documents is removed, because nothing reads it any more. PurgeQuarantine may be killed
// at any point and repeated.
//
// removed lists the files that were overwritten, whether they were removed or only reduced to the entries of other
// documents. An index or vectors that were recently moved to quarantine may still be mapped. unlinked lists the files
// that were removed without being overwritten, because a process has them open or this cannot be determined.
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
		// A file of vectors does not show to which documents they belong, and can always be rebuilt.
		is := strings.HasPrefix(originOf(o.FS, folder, name), vector.Folder+"/")
		if !is {
			var left []byte
			if is, left, err = t.inFile(o.FS, folder, name); err != nil {
				return removed, unlinked, err
			}
			if left != nil {
				path := filepath.Join(folder, name)
				// a repeated purge finds the file by this name and overwrites it
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
	for _, name := range undos { // first, while the files that an undo file names exist
		path := filepath.Join(folder, name)
		is, err := t.inUndo(path, away, o)
		if err == nil && is {
			err = o.FS.Rename(path, path+doomedSuffix)
			doomed, removed = append(doomed, path+doomedSuffix), append(removed, "quarantine/"+name)
		}
		if err != nil {
			return removed, unlinked, fmt.Errorf("renaming quarantine/%s: %w", name, err)
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
				return removed, unlinked, fmt.Errorf("renaming quarantine/%s: %w", name, err)
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
		if vfs.SameFile(o.FS, path, strings.TrimSuffix(path, doomedSuffix)) { // a purge was killed before the replacement
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
		if err != nil && !errors.Is(err, vfs.ErrLinked) { // the file still exists, under the name that marks it
			removed = slices.DeleteFunc(removed, func(s string) bool { return s == "quarantine/"+name })
		}
		if err := vfs.Unwiped(&t.unwiped, err); err != nil {
			return removed, unlinked, fmt.Errorf("overwriting files of quarantine: %w", err)
		}
	}
	return removed, append(unlinked, t.unlinked...), o.FS.SyncDir(folder)
}

// mappable matches the names in quarantine of files that other processes may have mapped.
var mappable = regexp.MustCompile(`-(memory_index\.([a-z0-9]+\.)?json|mapping\.(delta\.)?json|memory_vectors\.([a-z]+\.)*faiss)(\.[0-9]+)?$`)

// called reports whether the name of a file in quarantine, or of a parked file, shows that the file came from the path
// of a document of the set. folder is the folder that contains the file.
func (t *Set) called(fsys vfs.FS, folder, name string) bool {
	if t.kind.Tree() { // the last element of a path proves nothing
		return t.calledByPath(fsys, folder, name)
	}
	return t.Named(name) && !t.elsewhere(whence(fsys, folder, name))
}

// calledByPath reports the same as called, for a kind whose documents are in subfolders. It compares the whole paths
// instead of the names.
func (t *Set) calledByPath(fsys vfs.FS, folder, name string) bool {
	if rest, ok := strings.CutPrefix(name, t.kind.Folder+"@"); ok {
		parked, _, _ := strings.Cut(rest, "@")
		return t.parked.all[parked]
	}
	return t.hasPath(whence(fsys, folder, name))
}

// hasPath reports whether rel, a path in the store, is the path of a document of the set.
func (t *Set) hasPath(rel string) bool {
	return kind.At(rel) == t.kind && t.names.all[t.kind.Below(rel)]
}

// inFile reports whether a file has data of one of the documents of the set. If the file is a part of the log that
// also has entries of other documents, rest is the part to keep; otherwise rest is nil. inFile adds files about
// which the user must decide to the list that Unread returns.
func (t *Set) inFile(fsys vfs.FS, folder, name string) (affected bool, rest []byte, err error) {
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
	if errors.Is(err, errs.ErrTooLarge) { // not a file of the store; its owner must know what it contains
		t.ask(folder, name, "larger than "+human.Bytes(places.CopyMost)+", not read")
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
		affected = t.proof(b)
		switch {
		case affected:
		case filepath.Base(folder) == "quarantine":
			t.doubt(name, "a part of the file cannot be read")
		default:
			t.ask(folder, name, "a part of the file cannot be read")
		}
		return affected, nil, nil
	}
	if strings.HasPrefix(from, t.kind.Folder+"/") {
		return t.Holds(b), nil, nil
	}
	if t.kind.Opaque && kind.At(from) == nil { // from the pool in tmp/, or of unknown origin
		if t.documents[sha256.Sum256(b)] {
			return true, nil, nil
		}
		if t.content.foundIn(b) {
			t.ask(folder, name, mentionsContent)
			return false, nil, nil
		}
	}
	if t.kind != kind.Memories && t.elsewhere(from) || !t.In(b) {
		return false, nil, nil // what a memory contains about assemblies or scopes is its own
	}
	var doc outline
	// parked: an older version of an existing document
	if strings.HasPrefix(name, kind.Assemblies.Folder+"@") && json.Unmarshal(b, &doc) == nil {
		return true, nil, nil
	}
	// An index, or a file of unknown kind, also contains other memories, perhaps as their only copy: a mention
	// in it does not prove that it contains this one.
	if !t.proof(b) {
		t.ask(folder, name, "mentions a purged document, and also has data of other documents")
		return false, nil, nil
	}
	return true, nil, nil
}

// HasAside reports whether any file in quarantine or any parked file belongs to one of the documents of the
// set.
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

// whence returns the path in the store that a file in quarantine or a parked file had before it was moved. It returns
// "" if the path is unknown.
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

// originOf returns the path in the store that a file in quarantine had before it was moved, according to the note
// beside the file. It returns "" if there is no note.
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

// undoLine is the part of a line of an undo file that a purge needs: the names of the documents and files that the
// recorded change concerns. Only older versions of this program wrote undo files.
type undoLine struct {
	Path   string     `json:"path"`
	ID     string     `json:"id"`
	Before *undoKept  `json:"before"`
	After  *undoKept  `json:"after"`
	Ends   []undoLine `json:"ends"`
}

// undoKept names a copy of a file to which an undo file refers.
type undoKept struct {
	Kept string `json:"kept"`
}

// inUndo reports whether the undo file at path, which an older version wrote, names a document of the set, the file of
// such a document, or one of the files in away. away has the paths of the files in quarantine that the purge removes.
// A damaged line counts if its bytes are about a document of the set.
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

// PurgeParked overwrites and removes the files of some documents in tmp/parked/: files that another program had open
// when they were replaced. It cannot remove files that are still open, because the program may save into them; it
// returns their names in held.
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
