package vfs

// heldFolder is not used on Windows: package os has no calls relative to a folder for all that a store needs, so
// operations use paths, and the folder is compared first (see package wal).
type heldFolder struct{}

func (b *below) hold(string) (FS, func(), error) { return b, func() {}, nil }
