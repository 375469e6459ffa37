package diskspace

import (
	"slices"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
)

// MakeRoom removes the oldest backup of the index, for a full disk: the history is given for space only
// after them. false when there is none, or none that may go.
func MakeRoom(eng *engine.Engine) bool {
	if eng.Log() == nil || eng.Log().Purges().Overwrites() {
		return false // a purge deals with them
	}
	name := index.DropOldest(eng.Env().FS, eng.Env().Dir)
	if name != "" {
		eng.Env().Logger.Warn("the disk is full: an index backup was removed", "path", name)
	}
	return name != ""
}

// DeletedFirst orders the changes of a round that is repeated: where the disk is full
// nothing can be put in place before the files of what was deleted are gone, and files in the order
// of the log would wait for them forever.
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
