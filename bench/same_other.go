//go:build !linux

package main

func sameRead(name string) error { return bareRead(name) }
