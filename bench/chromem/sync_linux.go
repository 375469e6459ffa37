package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncFiles makes everything that was written below a folder durable.
func syncFiles(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
