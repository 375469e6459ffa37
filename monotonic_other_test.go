//go:build !linux

package varve

func monotonic() (int64, bool) { return 0, false }
