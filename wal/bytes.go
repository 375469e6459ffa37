package wal

import "unsafe"

// unsafeString is a key that lies in a buffer; whoever keeps it copies it.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
