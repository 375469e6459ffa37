//go:build linux || darwin

package vfs

import "golang.org/x/sys/unix"

const nonblock = unix.O_NONBLOCK
