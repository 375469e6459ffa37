package vfs

import (
	"errors"

	"golang.org/x/sys/windows"
)

func volume(name string) (Volume, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return Volume{}, err
	}
	root := make([]uint16, windows.MAX_LONG_PATH)
	if err := windows.GetVolumePathName(path, &root[0], uint32(len(root))); err != nil {
		return Volume{}, err
	}
	var free, total uint64
	if err := windows.GetDiskFreeSpaceEx(&root[0], &free, &total, nil); err != nil {
		return Volume{}, err
	}
	var flags uint32
	kind := make([]uint16, windows.MAX_PATH+1)
	if err := windows.GetVolumeInformation(&root[0], nil, 0, nil, nil, &flags, &kind[0], uint32(len(kind))); err != nil {
		return Volume{}, err
	}
	v := Volume{
		Type:     windows.UTF16ToString(kind),
		Free:     int64(free),
		Total:    int64(total),
		ReadOnly: flags&windows.FILE_READ_ONLY_VOLUME != 0,
	}
	// A network share may report the type NTFS too.
	v.Coherent = v.Type == "NTFS" && windows.GetDriveType(&root[0]) != windows.DRIVE_REMOTE
	return v, nil
}

func openBarrier(opener, string) (Barrier, error) { return nil, errors.ErrUnsupported }
