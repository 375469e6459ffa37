package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// Changer changes the files of a store. What stood in a place is kept in quarantine, and each
// change is in the manifest, durably, before it is made.
type Changer struct {
	fs         vfs.FS
	Dir        string
	layout     docfile.Layout
	mode       fs.FileMode
	clock      func() time.Time
	Quarantine *docfile.Quarantine
	Manifest   *Manifest // nil until begin
}

// NewChanger changes files of the store in a folder; mode is that of those that it makes.
func NewChanger(layout docfile.Layout, mode fs.FileMode, clock func() time.Time) *Changer {
	return &Changer{fs: layout.FS, Dir: layout.Root, layout: layout, mode: mode, clock: clock, Quarantine: docfile.NewQuarantine(layout, clock)}
}

// Keep gives what stands at a path in the store a second name in quarantine;
// nil when nothing stands there.
func (r *Changer) Keep(rel string, n docfile.Note) (*Stands, error) {
	name, err := places.Enter(r.fs, r.Dir, rel)
	if places.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	was, err := StandsAt(r.fs, name)
	if err != nil || was == nil {
		return nil, err
	}
	n.From = rel
	if n.Why == "" {
		n.Why = "repair replaced it"
	}
	was.Kept, err = r.Quarantine.Keep(name, n)
	return was, err
}

// Aside moves what stands at a path into quarantine.
func (r *Changer) Aside(d *repair.Done, rel, why string) error {
	return r.AsideNote(d, rel, docfile.Note{Why: why, ID: d.ID})
}

// AsideNote does so with a note that says more.
func (r *Changer) AsideNote(d *repair.Done, rel string, n docfile.Note) error {
	name, err := places.Enter(r.fs, r.Dir, rel)
	var info vfs.Info
	if err == nil {
		info, err = r.fs.Stat(name)
	}
	if places.Gone(err) {
		return ErrNothing
	}
	if err != nil {
		return err
	}
	if !info.Mode.IsRegular() || info.Size > docfile.HashMost || vfs.SparseAt(r.fs, name, info.Size) {
		return r.AsideSpecial(d, rel, n.Why)
	}
	was, err := r.Keep(rel, n)
	if err != nil {
		return err
	}
	if err := r.Manifest.Intend(Change{Do: d.Do, Path: rel, Before: was}); err != nil {
		return err
	}
	d.Where, d.Result = was.Kept, "it lies in "+was.Kept
	return r.Remove(rel)
}

// Remove takes away what has a second name in quarantine.
func (r *Changer) Remove(rel string) error {
	name, err := places.Enter(r.fs, r.Dir, rel)
	if err != nil {
		return err
	}
	if err := r.fs.Remove(name); err != nil && !places.Gone(err) {
		return err
	}
	return r.fs.SyncDir(filepath.Dir(name))
}

// AsideSpecial moves what cannot have two names, a folder, a link, a FIFO, and what is too
// large to be known by its bytes. It is renamed, never copied, and comes back the same way.
func (r *Changer) AsideSpecial(d *repair.Done, rel, why string) error {
	name, err := places.Enter(r.fs, r.Dir, rel)
	if err != nil {
		return err
	}
	was, err := StandsAt(r.fs, name)
	if err != nil {
		return err
	}
	if was == nil {
		return ErrNothing
	}
	sparse := was.Hash == "" && vfs.SparseAt(r.fs, name, was.Size)
	for n := 1; n < 1000; n++ {
		was.Kept = fmt.Sprintf("quarantine/%s.%d-%s", r.Manifest.ID, n, path.Base(rel))
		if _, err := r.fs.Stat(r.Path(filepath.FromSlash(was.Kept))); err == nil {
			continue
		}
		if err := r.Manifest.Intend(Change{Do: d.Do, Path: rel, Before: was}); err != nil {
			return err
		}
		err = r.fs.RenameNew(name, r.Path(filepath.FromSlash(was.Kept)))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := r.fs.SyncDir(r.Path(path.Dir(rel))); err != nil {
			return err
		}
		if err := r.fs.SyncDir(r.Path("quarantine")); err != nil {
			return err
		}
		d.Where, d.Result = was.Kept, "it lies in "+was.Kept
		return r.Quarantine.Note(was.Kept, docfile.Note{Why: why, From: rel, Size: was.Size, Mtime: was.Mtime, NotHashed: docfile.Unhashed(rel, was.Size, sparse)})
	}
	return fmt.Errorf("%s: there are too many of that name in quarantine", rel)
}

// Clear moves away what is no file, or too large to be one of ours, where a file is to be
// put: it cannot have a second name. Nothing is then in that place.
func (r *Changer) Clear(d *repair.Done, rel string) error {
	name := r.Path(filepath.FromSlash(rel))
	info, err := r.fs.Stat(name)
	if places.Gone(err) || err == nil && info.Mode.IsRegular() && info.Size <= docfile.HashMost && !vfs.SparseAt(r.fs, name, info.Size) {
		return nil
	}
	if err != nil {
		return err
	}
	aside := *d
	err = r.AsideSpecial(&aside, rel, Why(d.Findings))
	d.Where = aside.Where
	return err
}

// Write puts bytes in the place of a file, which is kept.
func (r *Changer) Write(d *repair.Done, rel string, data []byte) error {
	return r.WriteAt(d, rel, data, r.clock())
}

// WriteAt does so and gives the file a time.
func (r *Changer) WriteAt(d *repair.Done, rel string, data []byte, mtime time.Time) error {
	if err := r.Clear(d, rel); err != nil {
		return err
	}
	was, err := r.Keep(rel, NoteOf(d))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if err := r.Manifest.Intend(Change{Do: d.Do, Path: rel, Before: was,
		After: &Stands{Size: int64(len(data)), Mtime: mtime.UTC(), Hash: "sha256:" + hex.EncodeToString(sum[:])}}); err != nil {
		return err
	}
	if was != nil {
		d.Where = was.Kept
	}
	name, err := places.Enter(r.fs, r.Dir, rel)
	if err != nil {
		return err
	}
	temp := r.Path("tmp", "repair."+filepath.Base(name))
	if err := r.layout.Folder("tmp").Make(); err != nil {
		return err
	}
	if err := r.fs.Remove(temp); err != nil && !places.Gone(err) {
		return err
	}
	f, err := r.fs.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, r.mode)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.SetMtime(mtime)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := r.fs.Rename(temp, name); err != nil {
		return err
	}
	return r.fs.SyncDir(filepath.Dir(name))
}

// NoteOf is the note of what an action replaces.
func NoteOf(d *repair.Done) docfile.Note {
	n := docfile.Note{Why: Why(d.Findings), ID: d.ID}
	for _, f := range d.Findings {
		n.Version = max(n.Version, f.LSN)
	}
	return n
}

// IntendAny keeps a file that is going to change, in a way that is known at the
// end only.
func (r *Changer) IntendAny(d *repair.Done, rel string) error {
	if err := r.Clear(d, rel); err != nil {
		return err
	}
	was, err := r.Keep(rel, NoteOf(d))
	if err != nil {
		return err
	}
	if was != nil && d.Where == "" {
		d.Where = was.Kept
	}
	return r.Manifest.Intend(Change{Do: d.Do, Path: rel, Before: was, Any: true})
}

// Path is that of a file of the store.
func (r *Changer) Path(elem ...string) string {
	return filepath.Join(append([]string{r.Dir}, elem...)...)
}

// Why is the first reason of some findings.
func Why(list []repair.Finding) string {
	for _, f := range list {
		if f.Err != nil {
			return string(f.Kind) + ": " + f.Err.Error()
		}
	}
	return "repair"
}

var ErrNothing = errors.New("nothing to do any more")
