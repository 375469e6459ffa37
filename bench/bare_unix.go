//go:build unix

package main

import "golang.org/x/sys/unix"

// bareRead opens, reads and closes a file, with as few system calls as possible.
func bareRead(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, 4*docSize)
	_, err = unix.Read(fd, buf)
	return err
}
