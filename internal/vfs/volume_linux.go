package vfs

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// kinds maps the magic numbers of statfs(2) to names. Coherent file systems are local ones on which flock and shared
// mappings work between processes.
var kinds = map[uint32]struct {
	name     string
	coherent bool
}{
	0xef53:     {"ext4", true}, // ext2 and ext3 share the number
	0x58465342: {"xfs", true},
	0x9123683e: {"btrfs", true},
	0x2fc12fc1: {"zfs", true},
	0x01021994: {"tmpfs", true},
	0x794c7630: {"overlayfs", true},
	0x858458f6: {"ramfs", false},
	0xf2f52010: {"f2fs", false},
	0xca451a4e: {"bcachefs", false},
	0x6969:     {"nfs", false},
	0x517b:     {"smb", false},
	0xff534d42: {"cifs", false},
	0xfe534d42: {"smb2", false},
	0x01021997: {"9p", false},
	0x65735546: {"fuse", false}, // virtiofs too
	0x786f4256: {"vboxsf", false},
	0x00c36400: {"ceph", false},
	0x0bd00bd0: {"lustre", false},
	0x5346414f: {"afs", false},
	0x01161970: {"gfs2", false},
	0x7461636f: {"ocfs2", false},
	0x4d44:     {"vfat", false},
	0x2011bab0: {"exfat", false},
	0x5346544e: {"ntfs", false}, // the Linux drivers
	0x7366746e: {"ntfs3", false},
	0xf15f:     {"ecryptfs", false},
}

func volume(name string) (Volume, error) {
	return volumeBy(func(st *unix.Statfs_t) error { return unix.Statfs(name, st) })
}

func volumeBy(statfs func(*unix.Statfs_t) error) (Volume, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return statfs(&st) }); err != nil {
		return Volume{}, err
	}
	kind, ok := kinds[uint32(st.Type)]
	if !ok {
		kind.name = "unknown"
	}
	block := int64(st.Frsize)
	if block == 0 {
		block = int64(st.Bsize)
	}
	return Volume{
		Type:     kind.name,
		Free:     int64(st.Bavail) * block,
		Total:    int64(st.Blocks) * block,
		Coherent: kind.coherent,
		ReadOnly: st.Flags&unix.ST_RDONLY != 0,

		Files: int64(st.Files), FreeFiles: int64(st.Ffree),
	}, nil
}

type barrier struct{ f *os.File }

// openBarrier opens a barrier that calls syncfs. It does so only where syncfs reports write errors: since Linux 5.8,
// for errors after the descriptor was opened.
func openBarrier(open opener, name string) (Barrier, error) {
	f, err := openFileBy(open, nil, throughLink(name), unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, bare(err)
	}
	var v Volume
	err = control(f, func(fd uintptr) (err error) {
		v, err = volumeBy(func(st *unix.Statfs_t) error { return unix.Fstatfs(int(fd), st) })
		return err
	})
	trusted := v.Type == "ext4" || v.Type == "xfs" || v.Type == "btrfs"
	if err == nil && !(trusted && kernelAtLeast(release(), 5, 8)) {
		err = errors.ErrUnsupported
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &barrier{f}, nil
}

func (b *barrier) Sync() error {
	err := control(b.f, func(fd uintptr) error {
		return retry(func() error { return unix.Syncfs(int(fd)) })
	})
	return pathError("syncfs", b.f.Name(), err)
}

func (b *barrier) Close() error { return b.f.Close() }

func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// kernelAtLeast reports whether a release such as "6.18.44-fc" is at least major.minor; it returns false for a release
// that it cannot parse.
func kernelAtLeast(release string, major, minor int) bool {
	parts := strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}
