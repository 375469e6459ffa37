package vfs

// Overwrites describes the effect of overwriting a file's bytes on the blocks of the file.
type Overwrites int

// The values of Overwrites.
const (
	// OverwritesUnknown means that this is unknown: a network server, a FUSE server, or a layer over another file system
	// decides.
	OverwritesUnknown Overwrites = iota
	// OverwritesInPlace means that the same blocks get the new bytes.
	OverwritesInPlace
	// OverwritesElsewhere means that the new bytes go into other blocks; the old ones keep their contents until they are
	// reused.
	OverwritesElsewhere
)

// Overwrites returns what the type of a volume implies for the files on it. It does not consider files that share
// blocks (reflinks), snapshots below the file system, or the mapping inside an SSD.
func (v Volume) Overwrites() Overwrites {
	switch v.Type {
	case "ext4", "xfs", "tmpfs", "ramfs", "ocfs2", "gfs2", "vfat", "exfat", "ntfs", "ntfs3", "NTFS", "hfs", "msdos",
		"FAT32", "exFAT":
		return OverwritesInPlace
	case "btrfs", "zfs", "bcachefs", "f2fs", "apfs", "ReFS":
		return OverwritesElsewhere
	}
	return OverwritesUnknown
}
