//go:build unix

package users

import "syscall"

func umask(n int) { syscall.Umask(n) }
