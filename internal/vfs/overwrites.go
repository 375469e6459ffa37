package vfs

// Overwrites says what becomes of the blocks that a file has when its bytes are
// overwritten.
type Overwrites int

// What may become of them.
const (
	// OverwritesUnknown: nobody here knows: a network, a FUSE server, a layer over another
	// file system decides.
	OverwritesUnknown Overwrites = iota
	// OverwritesInPlace: they hold the new bytes.
	OverwritesInPlace
	// OverwritesElsewhere: the new bytes go into other blocks; the old ones keep what
	// they hold until they are used again.
	OverwritesElsewhere
)

// Overwrites says it of the files on a volume, as far as its type tells: files that share
// blocks (reflinks), snapshots below the file system, and the mapping of an SSD do not show.
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
