package docfile

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestACLDoesNotWiden verifies that a file with an access control list is replaced by one that gives its group no more
// rights than it had: the list is not kept, and the group bits of a file with a list are the list's mask.
func TestACLDoesNotWiden(t *testing.T) {
	b := newBed(t, nil)
	b.folder = b.l.FolderOf("memories", FolderOptions{Tree: true, KeepMode: true})
	b.put(b.change("x/a.md", 0, 1))
	path := b.folder.Path("x/a.md")
	// Version 2 of the format of acl(5): the owner and one user may read and write, the group has no right.
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{0x01, 6, ^uint32(0)}, {0x02, 6, 65534}, {0x04, 0, ^uint32(0)}, {0x10, 6, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.perm)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	if err := unix.Setxattr(path, "system.posix_acl_access", list, 0); errors.Is(err, unix.ENOTSUP) {
		t.Log("this file system has no access control lists")
		return
	} else if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Fatalf("%v, %v", info, err)
	}
	b.put(b.change("x/a.md", 1, 2))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
