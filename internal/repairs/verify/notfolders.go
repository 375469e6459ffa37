package verify

import (
	"path/filepath"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// NotFolders reports each path of the store's folders at which there is a link or another object that is not a folder.
// It does not follow links. blocked reports whether the store cannot be opened because of such an object.
func NotFolders(fsys vfs.FS, dir string) (list []repair.Finding, blocked bool) {
	look := func(rel string) (link, folder bool) {
		path := filepath.Join(dir, filepath.FromSlash(rel))
		info, err := fsys.Stat(path)
		if err != nil || info.Mode.IsDir() {
			return false, err == nil
		}
		f := repair.Finding{Kind: repair.NotFolder, Severity: repair.Healable, Path: rel, Offset: -1, Heals: repair.ByMoving,
			Next: repair.NextRepair,
			Err:  &vfs.NotFolderError{Path: path, Mode: info.Mode}, Stake: "nothing: the folder is created again"}
		switch {
		case places.Sole(rel):
			f.Stake = "the folder's files: if the object is a link to a folder of yours, replace the link by that " +
				"folder; repair restores from the other copies"
		case rel == "quarantine" || rel == "backups":
			f.Stake = "the files that this folder had before"
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
