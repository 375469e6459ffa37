package vfs

// Overwrites tells where a file system writes the new bytes when bytes of a file are overwritten: into the same blocks,
// or into other blocks.
type Overwrites int

// The values of Overwrites.
const (
	// OverwritesUnknown means that it is unknown which blocks get the new bytes, because a network server, a FUSE
	// server, or a layer over another file system decides.
	OverwritesUnknown Overwrites = iota
	// OverwritesInPlace means that the same blocks get the new bytes.
	OverwritesInPlace
	// OverwritesElsewhere means that other blocks get the new bytes. The old blocks keep their contents until they are
	// used again.
	OverwritesElsewhere
)

// Overwrites returns where the new bytes of overwritten files on a volume go, according to the type of its file system.
// It does not consider files that share blocks (reflinks), snapshots below the file system, or the mapping inside an
// SSD.
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
