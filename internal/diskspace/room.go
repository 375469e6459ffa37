package diskspace

import (
	"slices"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
)

// MakeRoom removes the oldest backup of the index, to free space on a full disk. It returns false if it removed no
// backup: none exists, or a purge is going to overwrite the backups.
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

// DeletedFirst moves the deletions to the front of list, the changes of a round that is repeated because the disk was
// full. On a full disk, no file can be written until the files of deleted documents are removed. In the order of the
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
