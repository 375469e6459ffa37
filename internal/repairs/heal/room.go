package heal

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/journal"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// reshape takes out of the way what is in the place of the store's own files, before the
// store is opened. It is renamed into quarantine/, never opened, and is not in the
// manifest: an undo leaves it there.
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

// moveOut renames one such thing into quarantine/.
func (r *repairer) moveOut(d *repair.Done) error {
	rel := d.Path
	from := r.Path(filepath.FromSlash(rel))
	info, err := r.o.FS.Stat(from)
	switch {
	case places.Gone(err), err == nil && info.Mode.IsRegular() && info.Size <= places.Limit(rel):
		return journal.ErrNothing
	case err != nil:
		return err
	}
	if err := r.o.layout(r.Dir).Folder(docfile.QuarantineFolder).Make(); err != nil {
		return err
	}
	where, err := r.freeName(docfile.QuarantineFolder+"/", "-"+path.Base(rel))
	if err != nil {
		return err
	}
	n := docfile.Note{Why: journal.Why(d.Findings), From: rel, Size: info.Size, Mtime: info.Mtime.UTC(), NotHashed: vfs.KindOf(info.Mode)}
	if err := r.Quarantine.Note(where, n); err != nil {
		return err
	}
	if err := r.o.FS.RenameNew(from, r.Path(filepath.FromSlash(where))); err != nil {
		return err
	}
	d.Where, d.Result = where, "it is "+where+" now"
	return errors.Join(r.o.FS.SyncDir(filepath.Dir(from)), r.o.FS.SyncDir(r.Path(docfile.QuarantineFolder)))
}

// freeName is a path in the store that nothing has yet.
func (r *repairer) freeName(head, tail string) (string, error) {
	stamp := r.o.Clock().UTC().Format("20060102-150405")
	for n := 1; n < 1000; n++ {
		rel := fmt.Sprintf("%saside-%s.%d%s", head, stamp, n, tail)
		if _, err := r.o.FS.Stat(r.Path(filepath.FromSlash(rel))); places.Gone(err) {
			return rel, nil
		}
	}
	return "", fmt.Errorf("%s%s: there are too many of that name", head, tail)
}

// makeRoom moves what is in the place of folders into quarantine. No lock is needed, and
// wal/, which has them, may be among them: nobody can use what is no folder.
func (r *repairer) makeRoom(list []repair.Action) error {
	for _, a := range list {
		if a.Path == "quarantine" {
			continue // see room
		}
		d := repair.Done{Action: a}
		info, err := r.o.FS.Stat(r.Path(filepath.FromSlash(a.Path)))
		switch {
		case err != nil:
		case info.Mode.IsDir():
			err = journal.ErrNothing
		default:
			err = r.AsideSpecial(&d, a.Path, journal.Why(a.Findings))
			r.bare = r.bare || err == nil && places.Sole(a.Path)
		}
		if places.Gone(err) {
			err = journal.ErrNothing
		}
		if err := r.done(d, err); err != nil {
			return err
		}
	}
	return nil
}

// room makes room for quarantine/ itself, where everything else is kept, beside it.
func (r *repairer) room() error {
	name := r.Path("quarantine")
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
		Where: where, Result: "it is called " + where + " now: remove it when you have looked at it"})
	return r.o.FS.SyncDir(r.Dir)
}
