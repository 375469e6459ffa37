package backups

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/repair"
)

// A store whose folder wal/ was deleted continues with what its files have, and reports that the history
// is gone: when it is opened, and when the history is requested.
func TestHistoryGone(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	st := fixture.Open(t, dir, nil)
	write := func(id, text string) uint64 {
		t.Helper()
		m, err := st.Put(ctx, varve.Memory{ID: id, Content: text})
		if err != nil {
			t.Fatal(err)
		}
		return m.Version
	}
	first := write("a", "one")
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	write("a", "two")
	if err := st.Flush(ctx); err != nil { // the previous index has become an older one
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, nil)
	r := st.Admin().OpenReport()
	if r.HistoryGone == nil || r.Rebuilt == nil || !errors.Is(r.Rebuilt.Why, varve.ErrHistoryGone) ||
		strings.Contains(r.Rebuilt.Why.Error(), "another store") {
		t.Errorf("the open reports %v, %+v", r.HistoryGone, r.Rebuilt)
	}
	check := func() {
		t.Helper()
		if m, err := st.Get(ctx, "a"); err != nil || m.Content != "two" {
			t.Errorf("the memory is %q, %v", m.Content, err)
		}
		n := 0
		for v, err := range st.History(ctx, "a") {
			if n++; n == 1 && (err != nil || !v.HistoryGone || !v.FromFile) {
				t.Errorf("the oldest version: %+v, %v", v, err)
			}
		}
		_, err := st.GetAt(ctx, "a", first)
		var gone *errs.HistoryGoneError
		if !errors.Is(err, varve.ErrHistoryGone) || !errors.Is(err, varve.ErrTruncated) ||
			!errors.Is(err, varve.ErrNotFound) || !errors.As(err, &gone) || gone.Begin <= first {
			t.Errorf("a version from before: %v", err)
		}
	}
	check()
	older := false
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != repair.Healable || f.Kind != repair.BackupDamaged ||
			!errors.Is(f.Err, varve.ErrHistoryGone) || strings.Contains(f.Err.Error(), "another store") {
			t.Errorf("verify finds %+v, %v", f, err)
		}
		older = true
	}
	if !older {
		t.Error("verify has found no older index of the log that is gone")
	}
	write("b", "new")
	for v, err := range st.History(ctx, "b") {
		if err != nil || v.HistoryGone {
			t.Errorf("a memory of the new log: %+v, %v", v, err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, nil)
	if r := st.Admin().OpenReport(); r.HistoryGone != nil {
		t.Errorf("the next open reports it again: %v", r.HistoryGone)
	}
	check()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}
