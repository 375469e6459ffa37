package postgres_test

import (
	"syscall"
	"testing"
)

func unprivileged() (uid, gid int) { return -1, -1 }

func as(_, _ int) *syscall.SysProcAttr { return nil }

func own(testing.TB, string) {}
