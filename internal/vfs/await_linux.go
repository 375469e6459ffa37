package vfs

import (
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The operations of futex(2), without FUTEX_PRIVATE_FLAG: other processes map the page.
const (
	futexWait = 0
	futexWake = 1
)

// Await waits until a word of the page changes; it implements Awaiter. The kernel compares only 32 bits, so Await waits
// on the lower half of the word, which changes with every step of a position.
func (p *page) Await(word int, old uint64, timeout time.Duration) {
	t := unix.NsecToTimespec(int64(timeout))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, p.low(word), futexWait, uintptr(uint32(old)), uintptr(unsafe.Pointer(&t)),
		0, 0)
}

// Wake wakes all callers that await a word; it implements Awaiter.
func (p *page) Wake(word int) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, p.low(word), futexWake, math.MaxInt32, 0, 0, 0)
}

// low returns the address of the lower 32 bits of a word.
func (p *page) low(word int) uintptr {
	at := uintptr(unsafe.Pointer(&p.words.Load()[word]))
	if one := uint16(1); *(*byte)(unsafe.Pointer(&one)) == 0 { // big-endian
		at += 4
	}
	return at
}
