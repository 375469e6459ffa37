package vector

import "unsafe"

// floats returns memory as numbers; it is aligned.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
}
