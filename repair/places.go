package repair

import (
	"errors"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
)

// truth are the folders whose files may be the only copy of something.
var truth = []string{"assemblies", "memories", "wal", "working"}

// notFolders are the places where a folder of the store has to be and a link, or something
// else that is no folder, is; opening refuses most of them. Nothing is followed to say so.
func notFolders(fsys vfs.FS, dir string) (list []Finding, blocked bool) {
	look := func(rel string) (link, folder bool) {
		path := filepath.Join(dir, filepath.FromSlash(rel))
		info, err := fsys.Stat(path)
		if err != nil || info.Mode.IsDir() {
			return false, err == nil
		}
		f := Finding{Kind: NotFolder, Severity: Healable, Path: rel, Offset: -1, Heals: ByMoving, Next: nextRepair,
			Err: &vfs.NotFolderError{Path: path, Mode: info.Mode}, Stake: "nothing: it is made again"}
		switch {
		case slices.Contains(truth, rel):
			f.Stake = "what should be there: if it leads to a folder of yours, put that in its place; repair heals from what else there is"
		case rel == "quarantine" || rel == "backups":
			f.Stake = "what was kept there before"
		case rel == "wal/archive":
			f.Stake = "the older versions of memories"
		}
		list = append(list, f)
		return true, false
	}
	inside := map[string][]string{"tmp": {"tmp/parked", "tmp/purge"}, "wal": {"wal/archive"}}
	for _, rel := range storeFolders {
		wrong, folder := look(rel)
		blocked = blocked || wrong && rel != "vector_index"
		if !folder {
			continue
		}
		for _, rel := range inside[rel] {
			wrong, _ := look(rel)
			blocked = blocked || wrong && rel == "wal/archive"
		}
	}
	return list, blocked
}

// isStore says whether what has a link in it is a store, and one that is used in this
// place, so that the link is in the place of one of its folders.
func isStore(dir string, o Options) bool {
	if _, err := Residence(o.FS, dir); err != nil && vfs.EnterError(err) == nil && !errors.Is(err, syscall.ENOTDIR) { // as of a FIFO in the place of wal/
		return false
	}
	if b, err := vfs.ReadFile(o.FS, filepath.Join(dir, "config.json"), 1<<20); err == nil && o.Config(b) == nil {
		return true
	}
	info, err := o.FS.Stat(filepath.Join(dir, "wal"))
	if err != nil || !info.Mode.IsDir() {
		return false
	}
	_, err = o.FS.Stat(filepath.Join(dir, "wal", "open.lock"))
	return err == nil
}

// folders reports them of an open store, and names the links in backups/, which may be a
// person's own: nothing enters them.
func (v *verify) folders() error {
	list, _ := notFolders(v.s.FS, v.s.Dir)
	names, err := v.s.FS.ReadDir(v.path("backups"))
	if err != nil && !gone(err) && !errors.Is(err, vfs.ErrNotFolder) {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		path := v.path("backups", name)
		if info, err := v.s.FS.Stat(path); err == nil && !info.Mode.IsDir() && !info.Mode.IsRegular() {
			list = append(list, Finding{Kind: NotFolder, Severity: Info, Path: "backups/" + name, Offset: -1,
				Stake: "nothing: it is not entered", Err: &vfs.NotFolderError{Path: path, Mode: info.Mode}})
		}
	}
	for _, f := range list {
		if err := v.report(f); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom moves what is in the place of folders into quarantine. No lock is needed, and
// wal/, which has them, may be among them: nobody can use what is no folder.
func (r *repairer) makeRoom(list []Action) error {
	for _, a := range list {
		if a.Path == "quarantine" {
			continue // see room
		}
		d := Done{Action: a}
		info, err := r.o.FS.Stat(r.path(filepath.FromSlash(a.Path)))
		switch {
		case err != nil:
		case info.Mode.IsDir():
			err = errNothing
		default:
			err = r.asideSpecial(&d, a.Path, why(a.Findings))
			r.bare = r.bare || err == nil && slices.Contains(truth, a.Path)
		}
		if gone(err) {
			err = errNothing
		}
		if err := r.done(d, err); err != nil {
			return err
		}
	}
	return nil
}

// room makes room for quarantine/ itself, where everything else is kept, beside it.
func (r *repairer) room() error {
	name := r.path("quarantine")
	info, err := r.o.FS.Stat(name)
	if gone(err) || err == nil && info.Mode.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	where, err := docfile.MoveBeside(r.o.FS, name)
	if err != nil {
		return err
	}
	r.report.Done = append(r.report.Done, Done{Action: Action{Do: MakeRoom, Path: "quarantine"},
		Where: where, Result: "it is called " + where + " now: remove it when you have looked at it"})
	return r.o.FS.SyncDir(r.dir)
}
