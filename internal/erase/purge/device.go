package purge

import (
	"fmt"

	"github.com/varve-db/varve/internal/vfs"
)

// overwrites says of the store's file system why overwriting a file may leave its old
// blocks as they are; "" where it does not.
func (p *Purger) overwrites() string {
	v, err := p.engine.Env().FS.Volume(p.engine.Env().Dir)
	if err != nil {
		return fmt.Sprintf("whether this file system overwrites files in place cannot be told: %v", err)
	}
	const helps = "trim the free space (fstrim) where the device does that, or keep the store on an encrypted file system"
	switch v.Overwrites() {
	case vfs.OverwritesInPlace:
		return ""
	case vfs.OverwritesElsewhere:
		also := ""
		if v.Type == "btrfs" {
			also = "rewrite the chunks (btrfs balance), "
		}
		return fmt.Sprintf("%s writes to new blocks: the old ones keep what was purged until they are used again, and "+
			"snapshots keep it: delete these, %s%s", v.Type, also, helps)
	}
	return fmt.Sprintf("%s may not overwrite files in place: the storage below it decides, and may keep what was purged "+
		"until its blocks are used again: %s there", v.Type, helps)
}
