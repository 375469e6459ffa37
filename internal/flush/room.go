package flush

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
)

// DropBackup removes the oldest backup of the index, for a full disk: the history is given for space only
// after them. false when there is none, or none that may go.
func DropBackup(eng *engine.Engine) bool {
	if eng.Log == nil || eng.Log.Overwrites() {
		return false // a purge deals with them
	}
	list, err := index.Backups(eng.Env.FS, eng.Env.Dir)
	if err != nil || len(list) == 0 {
		return false
	}
	oldest := list[len(list)-1]
	err = eng.Env.FS.Remove(filepath.Join(eng.Env.Dir, filepath.FromSlash(oldest.Name)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	eng.Env.Logger.Warn("the disk is full: an index backup was removed", "path", oldest.Name)
	return true
}
