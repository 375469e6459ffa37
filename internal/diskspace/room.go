package diskspace

import (
	"slices"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
)

// MakeRoom removes the oldest backup of the index, to free space on a full disk. It returns false if there is
// none that may be removed; then the caller removes history.
func MakeRoom(eng *engine.Engine) bool {
	if eng.Log() == nil || eng.Log().Purges().Overwrites() {
		return false // a purge deals with them
	}
	name := index.DropOldest(eng.Env().FS, eng.Env().Dir)
	if name != "" {
		eng.Env().Logger.Warn("the disk is full; removed an index backup", "path", name)
	}
	return name != ""
}

// DeletedFirst sorts the changes of a round that is repeated because the disk was full: deletions come first.
// On a full disk, no file can be written before the files of deleted documents are removed; in the order of the
// log, the round might wait for that forever.
func DeletedFirst(list []index.At) {
	slices.SortStableFunc(list, func(a, b index.At) int {
		switch {
		case a.Deleted == b.Deleted:
			return 0
		case a.Deleted:
			return -1
		}
		return 1
	})
}
