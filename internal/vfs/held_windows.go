package vfs

// heldFolder is never made: package os has no calls relative to a folder for all that a store needs, so
// that operations go by path, and what stands there is compared before (see package wal).
type heldFolder struct{}

func (b *below) hold(string) (FS, func(), error) { return b, func() {}, nil }
