package diskspace

import (
	"slices"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
)

// MakeRoom removes the oldest backup of the index, to make room on a full disk: history is sacrificed
// only after the backups. It returns false if there is none, or none that may be removed.
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

// DeletedFirst orders the changes of a round that is repeated: on a full disk nothing can be put in
// place before the files of deleted documents are removed, and in the order of the log the round would
// wait for that forever.
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
