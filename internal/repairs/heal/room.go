package heal

import (
	"path/filepath"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/repair"
)

// reshape moves things that are in the place of the store's own files, and are no files, out of the way,
// before the store is opened. It renames them into quarantine/, and never opens them.
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

// moveOut renames what is at the path of an action, and is not the expected file, into quarantine/.
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

// makeRoom moves things that are in the place of the store's folders, and are no folders, into quarantine. It
// needs no lock: the locks are in wal/, which may be one of these folders, and no process can use a folder
// that is something else.
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

// room makes it possible to create the folder quarantine/. If something that is not a folder has that name, room
// renames it to a free name beside it; it cannot be moved into quarantine/ as other files are.
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
