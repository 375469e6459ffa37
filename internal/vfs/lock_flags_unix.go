//go:build !windows

package vfs

import "golang.org/x/sys/unix"

// lockFlags follow no link, wait for no FIFO, and end with exec.
const lockFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
