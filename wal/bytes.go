package wal

import "unsafe"

// unsafeString returns b as a string without copying; a caller that keeps the string must copy it.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
