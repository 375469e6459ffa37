//go:build !unix

package main

import "os"

func bareRead(name string) error {
	_, err := os.ReadFile(name)
	return err
}
