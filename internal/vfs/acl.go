package vfs

// ACLReader is implemented by file systems on which the permission bits of the group may be the mask of an access
// control list.
type ACLReader interface {
	HasACL(name string) bool
}

// HasACL returns true if a file has a POSIX access control list, or if the system cannot say whether the file has one.
// In both cases the permission bits of the group may be the mask of the list instead of the rights of the group.
// HasACL returns false on systems and file systems without such lists.
func HasACL(fsys FS, name string) bool {
	r, ok := fsys.(ACLReader)
	return ok && r.HasACL(name)
}
