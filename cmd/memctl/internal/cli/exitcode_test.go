package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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
		{errors.New("?"), CodeInternal, ""},
		{varve.ErrSyncFailed, CodeInternal, ""},
		{varve.ErrClosed, CodeInternal, ""},
		{varve.ErrOutcomeUnknown, CodeInternal, ""},
		{fmt.Errorf("%w: %w", varve.ErrOutcomeUnknown, context.Canceled), CodeInterrupted, ""},
		{fmt.Errorf("%w: %w", varve.ErrReadOnly, &varve.CorruptionError{Path: "wal/2", Offset: 3}), CodeLost, "wal/2"},
		{fmt.Errorf("%w: %w", varve.ErrInvalid, &varve.CorruptionError{Path: "wal/2"}), CodeLost, "wal/2"},
		{varve.ErrNotFound, CodeNotFound, ""},
		{varve.ErrConflict, CodeConflict, ""},
		{&varve.BatchError{Err: varve.ErrConflict}, CodeConflict, ""},
		{&varve.ConflictError{ID: "a", Expected: 8, Found: 16}, CodeConflict, ""},
		{&varve.FieldError{Field: "id", Err: varve.ErrInvalid}, CodeRefused, ""},
		{varve.ErrTooLarge, CodeRefused, ""},
		{varve.ErrBatchTooLarge, CodeRefused, ""},
		{varve.ErrLimit, CodeRefused, ""},
		{&varve.PurgedError{ID: "a"}, CodeRefused, ""},
		{varve.ErrSession, CodeRefused, ""},
		{varve.ErrNoStore, CodeNoStore, ""},
		{&varve.LockError{Path: "wal/append.lock", Err: context.DeadlineExceeded}, CodeLocked, "wal/append.lock"},
		{&varve.LockError{Path: "wal/append.lock", Err: context.Canceled}, CodeInterrupted, "wal/append.lock"}, // it was told to end
		{varve.ErrNewerFormat, CodeNewer, ""},
		{varve.ErrDiskFull, CodeDiskFull, ""},
		{path(syscall.ENOSPC), CodeDiskFull, "wal/1"},
		{&varve.DiskFullError{Path: "wal"}, CodeDiskFull, "wal"},
		{varve.ErrPermission, CodePermission, ""},
		{&varve.PermissionError{Path: "wal", Err: path(syscall.EPERM)}, CodePermission, "wal"},
		{&varve.MovedError{From: "a", To: "b"}, CodeNoStore, "a"},
		{&varve.UnfinishedError{From: "a", To: "b"}, CodeNoStore, ""},
		{path(syscall.EACCES), CodePermission, "wal/1"},
		{varve.ErrReadOnly, CodePermission, ""},
		{Usagef("memctl put", "?"), codeUsage, ""},
		{context.Canceled, CodeInterrupted, ""},
		{path(fs.ErrNotExist), CodeRefused, "wal/1"},
	} {
		if f := Classify(c.err); f.Code != c.code || f.Path != c.path {
			t.Errorf("%v: %d about %q, want %d about %q", c.err, f.Code, f.Path, c.code, c.path)
		}
	}
}

// The remedy that the error carries goes before that of its kind.
func TestRemedy(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s")
	st, err := varve.Open(t.Context(), store, nil)
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err error
		fix string
	}{
		{&varve.DiskFullError{Path: store, Free: 1 << 20, Need: 3 << 20}, "free space on the disk of " + store + ", about 2.0 MiB; deleting still works: memctl rm ID"},
		{&varve.DiskFullError{Path: store, Free: -1, Need: -1}, "free space on the disk of " + store + "; deleting still works: memctl rm ID"},
		{&varve.DiskFullError{Path: "/backup", Free: -1, Need: -1}, "free space on the disk of /backup"},
		{&fs.PathError{Op: "write", Path: "/export", Err: syscall.ENOSPC}, "free space on the disk of /export"},
		{&varve.PermissionError{Path: "/d/x", Fix: "chattr -i /d/x"}, "chattr -i /d/x"},
		{&varve.PermissionError{Path: "/d/x"}, "change the owner or the mode, or run memctl as the owner"},
		{&varve.MovedError{From: "/a", To: "/b c"}, "use the store at its new place: memctl --store '/b c' status"},
		{&varve.UnfinishedError{From: "/a", To: "/b"}, "finish it: memctl --store /a migrate --to /b --switch"},
	} {
		if f := Classify(fmt.Errorf("doing something: %w", c.err)); f.Fix != c.fix {
			t.Errorf("%v:\n%s, want\n%s", c.err, f.Fix, c.fix)
		}
	}
}

func TestGraver(t *testing.T) {
	for _, c := range [][3]int{
		{CodeOK, codeUsage, codeUsage}, {CodeNotFound, CodeConflict, CodeConflict}, {CodeConflict, CodeLost, CodeLost},
		{CodeLost, CodeDamage, CodeLost}, {CodeInterrupted, CodeNotFound, CodeInterrupted}, {CodeDiskFull, CodeRefused, CodeDiskFull},
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
