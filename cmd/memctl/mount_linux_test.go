package main

import "golang.org/x/sys/unix"

func bindMount(from, to string) error { return unix.Mount(from, to, "", unix.MS_BIND, "") }

func unmount(name string) error { return unix.Unmount(name, unix.MNT_DETACH) }
