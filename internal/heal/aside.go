package heal

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

// changer changes the files of a store. What stood in a place is kept in quarantine, and each
// change is in the manifest, durably, before it is made.
type changer struct {
	fs     vfs.FS
	dir    string
	layout docfile.Layout
	mode   fs.FileMode
	clock  func() time.Time
	q      *docfile.Quarantine
	m      *manifest // nil until begin
}

// newChanger changes files of the store in a folder; mode is that of those that it makes.
func newChanger(layout docfile.Layout, mode fs.FileMode, clock func() time.Time) *changer {
	return &changer{fs: layout.FS, dir: layout.Root, layout: layout, mode: mode, clock: clock, q: docfile.NewQuarantine(layout, clock)}
}

// keep gives what stands at a path in the store a second name in quarantine;
// nil when nothing stands there.
func (r *changer) keep(rel string, n docfile.Note) (*stands, error) {
	name, err := places.Enter(r.fs, r.dir, rel)
	if places.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	was, err := standsAt(r.fs, name)
	if err != nil || was == nil {
		return nil, err
	}
	n.From = rel
	if n.Why == "" {
		n.Why = "repair replaced it"
	}
	was.Kept, err = r.q.Keep(name, n)
	return was, err
}

// aside moves what stands at a path into quarantine.
func (r *changer) aside(d *repair.Done, rel, why string) error {
	return r.asideNote(d, rel, docfile.Note{Why: why, ID: d.ID})
}

func (r *changer) asideNote(d *repair.Done, rel string, n docfile.Note) error {
	name, err := places.Enter(r.fs, r.dir, rel)
	var info vfs.Info
	if err == nil {
		info, err = r.fs.Stat(name)
	}
	if places.Gone(err) {
		return errNothing
	}
	if err != nil {
		return err
	}
	if !info.Mode.IsRegular() || info.Size > docfile.HashMost {
		return r.asideSpecial(d, rel, n.Why)
	}
	was, err := r.keep(rel, n)
	if err != nil {
		return err
	}
	if err := r.m.intend(change{Do: d.Do, Path: rel, Before: was}); err != nil {
		return err
	}
	d.Where, d.Result = was.Kept, "it lies in "+was.Kept
	return r.remove(rel)
}

// remove takes away what has a second name in quarantine.
func (r *changer) remove(rel string) error {
	name, err := places.Enter(r.fs, r.dir, rel)
	if err != nil {
		return err
	}
	if err := r.fs.Remove(name); err != nil && !places.Gone(err) {
		return err
	}
	return r.fs.SyncDir(filepath.Dir(name))
}

// asideSpecial moves what cannot have two names, a folder, a link, a FIFO, and what is too
// large to be known by its bytes. It is renamed, never copied, and comes back the same way.
func (r *changer) asideSpecial(d *repair.Done, rel, why string) error {
	name, err := places.Enter(r.fs, r.dir, rel)
	if err != nil {
		return err
	}
	was, err := standsAt(r.fs, name)
	if err != nil {
		return err
	}
	if was == nil {
		return errNothing
	}
	for n := 1; n < 1000; n++ {
		was.Kept = fmt.Sprintf("quarantine/%s.%d-%s", r.m.id, n, path.Base(rel))
		if _, err := r.fs.Stat(r.path(filepath.FromSlash(was.Kept))); err == nil {
			continue
		}
		if err := r.m.intend(change{Do: d.Do, Path: rel, Before: was}); err != nil {
			return err
		}
		err = r.fs.RenameNew(name, r.path(filepath.FromSlash(was.Kept)))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := r.fs.SyncDir(r.path(path.Dir(rel))); err != nil {
			return err
		}
		if err := r.fs.SyncDir(r.path("quarantine")); err != nil {
			return err
		}
		d.Where, d.Result = was.Kept, "it lies in "+was.Kept
		return r.q.Note(was.Kept, docfile.Note{Why: why, From: rel, Size: was.Size, Mtime: was.Mtime, NotHashed: docfile.Unhashed(rel, was.Size)})
	}
	return fmt.Errorf("%s: there are too many of that name in quarantine", rel)
}

// clear moves away what is no file, or too large to be one of ours, where a file is to be
// put: it cannot have a second name. Nothing is then in that place.
func (r *changer) clear(d *repair.Done, rel string) error {
	info, err := r.fs.Stat(r.path(filepath.FromSlash(rel)))
	if places.Gone(err) || err == nil && info.Mode.IsRegular() && info.Size <= docfile.HashMost {
		return nil
	}
	if err != nil {
		return err
	}
	aside := *d
	err = r.asideSpecial(&aside, rel, why(d.Findings))
	d.Where = aside.Where
	return err
}

// write puts bytes in the place of a file, which is kept.
func (r *changer) write(d *repair.Done, rel string, data []byte) error {
	return r.writeAt(d, rel, data, r.clock())
}

// writeAt does so and gives the file a time.
func (r *changer) writeAt(d *repair.Done, rel string, data []byte, mtime time.Time) error {
	if err := r.clear(d, rel); err != nil {
		return err
	}
	was, err := r.keep(rel, noteOf(d))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if err := r.m.intend(change{Do: d.Do, Path: rel, Before: was,
		After: &stands{Size: int64(len(data)), Mtime: mtime.UTC(), Hash: "sha256:" + hex.EncodeToString(sum[:])}}); err != nil {
		return err
	}
	if was != nil {
		d.Where = was.Kept
	}
	name, err := places.Enter(r.fs, r.dir, rel)
	if err != nil {
		return err
	}
	temp := r.path("tmp", "repair."+filepath.Base(name))
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

// noteOf is the note of what an action replaces.
func noteOf(d *repair.Done) docfile.Note {
	n := docfile.Note{Why: why(d.Findings), ID: d.ID}
	for _, f := range d.Findings {
		n.Version = max(n.Version, f.LSN)
	}
	return n
}

// intendAny keeps a file that is going to change, in a way that is known at the
// end only.
func (r *changer) intendAny(d *repair.Done, rel string) error {
	if err := r.clear(d, rel); err != nil {
		return err
	}
	was, err := r.keep(rel, noteOf(d))
	if err != nil {
		return err
	}
	if was != nil && d.Where == "" {
		d.Where = was.Kept
	}
	return r.m.intend(change{Do: d.Do, Path: rel, Before: was, Any: true})
}

func (r *changer) path(elem ...string) string {
	return filepath.Join(append([]string{r.dir}, elem...)...)
}

// why is the first reason of some findings.
func why(list []repair.Finding) string {
	for _, f := range list {
		if f.Err != nil {
			return string(f.Kind) + ": " + f.Err.Error()
		}
	}
	return "repair"
}

var errNothing = errors.New("nothing to do any more")
