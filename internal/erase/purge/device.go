package purge

import (
	"fmt"

	"github.com/varve-db/varve/internal/vfs"
)

// overwrites returns the reason for which old data may remain on the device after a file of the store was overwritten.
// It returns "" if the file system overwrites in place.
func (p *Purger) overwrites() string {
	v, err := p.engine.Env().FS.Volume(p.engine.Env().Dir)
	if err != nil {
		return fmt.Sprintf("cannot determine whether this file system overwrites files in place: %v", err)
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
		return fmt.Sprintf("%s writes to new blocks: the old blocks keep purged data until they are reused, and "+
			"snapshots keep it, too: delete the snapshots, %s%s", v.Type, also, helps)
	}
	return fmt.Sprintf("%s may not overwrite files in place: the underlying storage decides, and may keep purged data "+
		"until its blocks are reused: %s there", v.Type, helps)
}
