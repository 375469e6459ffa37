package space

import (
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
)

// MakeRoom removes the oldest backup of the index, for a full disk: the history is given for space only
// after them. false when there is none, or none that may go.
func MakeRoom(eng *engine.Engine) bool {
	if eng.Log == nil || eng.Log.Overwrites() {
		return false // a purge deals with them
	}
	name := index.DropOldest(eng.Env.FS, eng.Env.Dir)
	if name != "" {
		eng.Env.Logger.Warn("the disk is full: an index backup was removed", "path", name)
	}
	return name != ""
}
