//go:build !linux

package redis_test

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
