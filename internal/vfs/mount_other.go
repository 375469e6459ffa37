//go:build !linux

package vfs

func isMount(string) bool { return false }
