package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

func volume(name string) (Volume, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(name, &st) }); err != nil {
		return Volume{}, err
	}
	kind := unix.ByteSliceToString(st.Fstypename[:])
	return Volume{
		Type:     kind,
		Free:     int64(st.Bavail) * int64(st.Bsize),
		Total:    int64(st.Blocks) * int64(st.Bsize),
		Coherent: kind == "apfs",
		ReadOnly: st.Flags&unix.MNT_RDONLY != 0,

		Files: int64(st.Files), FreeFiles: int64(st.Ffree),
	}, nil
}

func openBarrier(opener, string) (Barrier, error) { return nil, errors.ErrUnsupported }
