package vfs

// ACLReader is implemented by file systems on which the permission bits of the group may be the mask of an access
// control list.
type ACLReader interface {
	HasACL(name string) bool
}

// HasACL reports whether a file has a POSIX access control list, or whether that is unknown. If so, the permission bits
// of the group are the mask of the list, not the rights of the group. HasACL returns false on systems and file systems
// without such lists.
func HasACL(fsys FS, name string) bool {
	r, ok := fsys.(ACLReader)
	return ok && r.HasACL(name)
}
