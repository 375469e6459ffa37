package heal

import (
	"path/filepath"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/repair"
)

// reshape clears the paths of the store's own files before the store is opened: if a path has a link, a folder, another
// special file or a file that is too large, reshape renames that object into quarantine/. It never opens such an
// object.
func (r *repairer) reshape(list []repair.Action) error {
	for _, a := range list {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		d := repair.Done{Action: a}
		if err := r.done(d, r.moveOut(&d)); err != nil {
			return err
		}
	}
	return nil
}

// moveOut renames the object at the path of an action into quarantine/, unless it is the regular file that belongs
// there.
func (r *repairer) moveOut(d *repair.Done) error {
	rel := d.Path
	from := r.path(filepath.FromSlash(rel))
	info, err := r.o.FS.Stat(from)
	switch {
	case places.Gone(err), err == nil && info.Mode.IsRegular() && info.Size <= places.Limit(rel):
		return errNothing
	case err != nil:
		return err
	}
	where, err := r.aside.Special(from, docfile.Note{Why: reasonOf(d.Findings)})
	if err != nil {
		return err
	}
	d.Where, d.Result = where, "now in "+where
	return nil
}

// makeRoom clears the paths of the store's folders: if a path has an object that is not a folder, makeRoom moves it
// into quarantine. No lock is needed. The locks are in wal/, which may be one of these paths, and no process can use
// the folder while another object has the folder's path.
func (r *repairer) makeRoom(list []repair.Action) error {
	for _, a := range list {
		if a.Path == "quarantine" {
			continue // room handles it
		}
		d := repair.Done{Action: a}
		info, err := r.o.FS.Stat(r.path(filepath.FromSlash(a.Path)))
		switch {
		case err != nil:
		case info.Mode.IsDir():
			err = errNothing
		default:
			err = r.setSpecialAside(&d, a.Path, noteOf(&d))
			r.bare = r.bare || err == nil && places.Sole(a.Path)
		}
		if places.Gone(err) {
			err = errNothing
		}
		if err := r.done(d, err); err != nil {
			return err
		}
	}
	return nil
}

// room makes sure that the folder quarantine/ can be created. If an object that is not a folder has that name, room
// renames the object to a free name in the same folder, because it cannot be moved into quarantine/.
func (r *repairer) room() error {
	name := r.path("quarantine")
	info, err := r.o.FS.Stat(name)
	if places.Gone(err) || err == nil && info.Mode.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	where, err := docfile.MoveBeside(r.o.FS, name)
	if err != nil {
		return err
	}
	r.report.Done = append(r.report.Done, repair.Done{Action: repair.Action{Do: repair.MakeRoom, Path: "quarantine"},
		Where: where, Result: "renamed to " + where + " → inspect it, then remove it"})
	return r.o.FS.SyncDir(r.dir)
}
