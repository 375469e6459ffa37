//go:build !linux

package varve

import "testing"

// mountSmall: only Linux has a tmpfs; the simulated disk takes its place.
func mountSmall(*testing.T, int64) (dir string, ok bool) { return "", false }

func remount(*testing.T, string, bool) {}
