package repair

import (
	"errors"
	"path/filepath"
	"syscall"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
)

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
		case places.Sole(rel):
			f.Stake = "what should be there: if it leads to a folder of yours, put that in its place; repair heals from what else there is"
		case rel == "quarantine" || rel == "backups":
			f.Stake = "what was kept there before"
		case rel == "wal/archive":
			f.Stake = "the older versions of memories"
		}
		list = append(list, f)
		return true, false
	}
	for _, rel := range places.TopFolders() {
		wrong, folder := look(rel)
		blocked = blocked || wrong && !places.Optional(rel)
		if !folder {
			continue
		}
		for _, rel := range places.Inside(rel) {
			wrong, _ := look(rel)
			blocked = blocked || wrong && !places.Optional(rel)
		}
	}
	return list, blocked
}

// isStore says whether what has a link in it is a store, and one that is used in this
// place, so that the link is in the place of one of its folders.
func isStore(dir string, o GroundOptions) bool {
	if _, err := Residence(o.FS, dir); err != nil && vfs.EnterError(err) == nil && !errors.Is(err, syscall.ENOTDIR) { // as of a FIFO in the place of wal/
		return false
	}
	if b, err := vfs.ReadFile(o.FS, filepath.Join(dir, "config.json"), places.ConfigMost); err == nil && o.Config(b) == nil {
		return true
	}
	info, err := o.FS.Stat(filepath.Join(dir, "wal"))
	if err != nil || !info.Mode.IsDir() {
		return false
	}
	_, err = o.FS.Stat(filepath.Join(dir, "wal", "open.lock"))
	return err == nil
}
