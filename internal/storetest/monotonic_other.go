//go:build !linux

package storetest

func Monotonic() (int64, bool) { return 0, false }
