//go:build !linux

package vfs

func linkNewTest(old, new string) error { return renameNew(old, new) }
