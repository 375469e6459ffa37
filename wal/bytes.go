package wal

import "unsafe"

// unsafeString is a key that lies in a buffer; to keep it, copy it.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
