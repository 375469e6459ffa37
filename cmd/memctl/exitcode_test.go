package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
)

func TestClassify(t *testing.T) {
	path := func(err error) error { return &fs.PathError{Op: "open", Path: "wal/1", Err: err} }
	for _, c := range []struct {
		err  error
		code int
		path string
	}{
		{errors.New("?"), codeInternal, ""},
		{varve.ErrSyncFailed, codeInternal, ""},
		{varve.ErrClosed, codeInternal, ""},
		{varve.ErrOutcomeUnknown, codeInternal, ""},
		{fmt.Errorf("%w: %w", varve.ErrOutcomeUnknown, context.Canceled), codeInterrupted, ""},
		{fmt.Errorf("%w: %w", varve.ErrReadOnly, &varve.CorruptionError{Path: "wal/2", Offset: 3}), codeLost, "wal/2"},
		{fmt.Errorf("%w: %w", varve.ErrInvalid, &varve.CorruptionError{Path: "wal/2"}), codeLost, "wal/2"},
		{varve.ErrNotFound, codeNotFound, ""},
		{varve.ErrConflict, codeConflict, ""},
		{&varve.BatchError{Err: varve.ErrConflict}, codeConflict, ""},
		{&varve.FieldError{Field: "id", Err: varve.ErrInvalid}, codeRefused, ""},
		{varve.ErrTooLarge, codeRefused, ""},
		{varve.ErrBatchTooLarge, codeRefused, ""},
		{varve.ErrLimit, codeRefused, ""},
		{varve.ErrSession, codeRefused, ""},
		{varve.ErrNoStore, codeNoStore, ""},
		{&varve.LockError{Path: "wal/append.lock", Err: context.DeadlineExceeded}, codeLocked, "wal/append.lock"},
		{varve.ErrNewerFormat, codeNewer, ""},
		{varve.ErrDiskFull, codeDiskFull, ""},
		{path(syscall.ENOSPC), codeDiskFull, "wal/1"},
		{varve.ErrPermission, codePermission, ""},
		{path(syscall.EACCES), codePermission, "wal/1"},
		{varve.ErrReadOnly, codePermission, ""},
		{usagef("memctl put", "?"), codeUsage, ""},
		{context.Canceled, codeInterrupted, ""},
		{path(fs.ErrNotExist), codeRefused, "wal/1"},
	} {
		if f := classify(c.err); f.code != c.code || f.Path != c.path {
			t.Errorf("%v: %d about %q, want %d about %q", c.err, f.code, f.Path, c.code, c.path)
		}
	}
}

func TestGraver(t *testing.T) {
	for _, c := range [][3]int{
		{codeOK, codeUsage, codeUsage}, {codeNotFound, codeConflict, codeConflict}, {codeConflict, codeLost, codeLost},
		{codeLost, codeDamage, codeLost}, {codeInterrupted, codeNotFound, codeInterrupted}, {codeDiskFull, codeRefused, codeDiskFull},
	} {
		if got := graver(c[0], c[1]); got != c[2] {
			t.Errorf("of %d and %d: %d, want %d", c[0], c[1], got, c[2])
		}
		if got := graver(c[1], c[0]); got != c[2] {
			t.Errorf("of %d and %d: %d, want %d", c[1], c[0], got, c[2])
		}
	}
	// Every code has its place.
	for _, c := range classes {
		if !slices.Contains(gravity[:], c.code) {
			t.Errorf("code %d of %q is not in gravity", c.code, c.kind)
		}
	}
}
