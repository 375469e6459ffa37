package vfs

import "time"

// patience does nothing: Windows has no leases.
type patience struct{}

func newPatience(time.Duration) *patience { return nil }

func (*patience) lock(_ string, tryLock func() (bool, error)) (bool, error) { return tryLock() }

// IsLeased reports whether a file could not be opened because another process has a lease on it.
func IsLeased(error) bool { return false }
