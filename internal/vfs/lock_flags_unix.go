//go:build !windows

package vfs

import "golang.org/x/sys/unix"

// lockFlags are the flags to open a lock file: follow no link, do not wait for a FIFO, close on exec.
const lockFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
