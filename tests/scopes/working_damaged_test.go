package scopes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/working"
)

// TestWorkingFlushedByOther: a scope's file is removed or damaged while one process has the scope in
// memory and writes. Another process, which cannot read the scope, flushes and releases the log:
// acknowledged operations are there afterwards.
func TestWorkingFlushedByOther(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(name string) error{
		"gone":    os.Remove,
		"damaged": func(name string) error { return os.WriteFile(name, []byte("{ no JSON"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open := func() *varve.Store {
				st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10})
				fixture.Must(t, err)
				return st
			}
			st := open()
			fixture.Must(t, wm(t, st).Set(t.Context(), "first", 1))
			fixture.Must(t, st.Close())

			st = open()
			m := wm(t, st)
			fixture.Must(t, m.Set(t.Context(), "second", 2))
			fixture.Must(t, st.Admin().Compact(t.Context()))
			hasValue(t, m, "second", 2.0) // it has read the file
			fixture.Must(t, harm(scopeFile(t, dir)))
			fixture.Must(t, m.Set(t.Context(), "third", 3))

			other := open()
			fixture.Must(t, other.Admin().Compact(t.Context()))
			fixture.Must(t, other.Close())
			fixture.Must(t, st.Close())
			st = open()
			defer st.Close()
			m = wm(t, st)
			hasValue(t, m, "first", 1.0)
			hasValue(t, m, "second", 2.0)
			hasValue(t, m, "third", 3.0)
		})
	}
}

// TestWorkingEditTooLarge: an edit that is too large for an entry of the log is an error for every user
// of the scope, and not an endless loop; everything else works.
func TestWorkingEditTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *varve.Store {
		st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10})
		fixture.Must(t, err)
		return st
	}
	st := open()
	m := wm(t, st)
	for i := range 60 { // more than an entry takes
		fixture.Must(t, m.Set(t.Context(), fmt.Sprint("k", i), scrambled(i, 800)))
	}
	fixture.Must(t, st.Close())
	edit(t, dir, `"values"`, ` "values"`)
	st = open()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := st.Working().Home().Do(ctx, &working.Request{Scope: workScope, Op: working.OpAppend{Text: "x"}})
	if !errors.Is(err, varve.ErrTooLarge) {
		t.Errorf("written into a scope whose edit is too large: %v", err)
	}
	done := make(chan error)
	go func() { done <- st.Close() }()
	select {
	case err := <-done:
		fixture.Must(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("Close waits for ever")
	}
}

func scrambled(seed, n int) string {
	b, x := make([]byte, n), uint64(seed+1)*0x9E3779B97F4A7C15
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[x>>58]
	}
	return string(b)
}

func edit(t *testing.T, dir, old, new string) {
	t.Helper()
	text, err := os.ReadFile(scopeFile(t, dir))
	fixture.Must(t, err)
	changed := strings.Replace(string(text), old, new, 1)
	if changed == string(text) {
		t.Fatalf("%q is not in it", old)
	}
	fixture.Must(t, os.WriteFile(scopeFile(t, dir), []byte(changed), 0o600))
}

// TestWorkingEditUnderLog: a file is edited while the log has newer entries of the scope. All processes
// see the same, whichever reads the file first.
func TestWorkingEditUnderLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *varve.Store {
		st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
		fixture.Must(t, err)
		t.Cleanup(func() { fixture.Must(t, st.Close()) })
		return st
	}
	a := open()
	ma := wm(t, a)
	fixture.Must(t, ma.Set(t.Context(), "k", "as it was"))
	fixture.Must(t, a.Flush(t.Context()))
	fixture.Must(t, ma.Set(t.Context(), "l", 1))
	edit(t, dir, `"value": "as it was"`, `"value": "edited"`)
	b := open()
	hasValue(t, wm(t, b), "k", "edited")
	hasValue(t, ma, "k", "edited")
	hasValue(t, ma, "l", 1.0)
	fixture.Must(t, a.Flush(t.Context()))
	hasValue(t, wm(t, b), "k", "edited")
}

// TestWorkingEditedPlace: the position in the log that a file names is edited by hand.
func TestWorkingEditedPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *varve.Store {
		st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
		fixture.Must(t, err)
		return st
	}
	st := open()
	fixture.Must(t, wm(t, st).Set(t.Context(), "k", 1))
	fixture.Must(t, st.Close())
	text, err := os.ReadFile(scopeFile(t, dir))
	fixture.Must(t, err)
	text = regexp.MustCompile(`"lsn": \d+`).ReplaceAll(text, []byte(`"lsn": 8000000000000`))
	fixture.Must(t, os.WriteFile(scopeFile(t, dir), text, 0o600))
	st = open()
	defer st.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	m, err := st.Working().Open(ctx, workScope, nil)
	fixture.Must(t, err)
	fixture.Must(t, m.Set(ctx, "l", 2))
	hasValue(t, m, "k", 1.0)
	fixture.Must(t, st.Flush(t.Context()))
	verifyClean(t, st)
}

// TestWorkingTogether: operations that wait together are no larger than an entry of the log may be.
func TestWorkingTogether(t *testing.T) {
	t.Parallel()
	st, err := varve.Open(t.Context(), t.TempDir(), &varve.Options{NoBackground: true, SegmentSize: 64 << 10})
	fixture.Must(t, err)
	defer st.Close()
	m := wm(t, st)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			if err := m.Set(t.Context(), fmt.Sprint("k", i), scrambled(i, 1000)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestWorkingReformatted: a file that an editor has reformatted, and one that is not a scope's, hide no
// scope from listings and backups.
func TestWorkingReformatted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	fixture.Must(t, wm(t, st).Set(t.Context(), "k", 1))
	fixture.Must(t, st.Close())
	text, err := os.ReadFile(scopeFile(t, dir))
	fixture.Must(t, err)
	fixture.Must(t, os.WriteFile(scopeFile(t, dir), []byte(strings.ReplaceAll(string(text), "  ", "    ")), 0o600))
	st, err = varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	defer st.Close()
	n := 0
	for s, err := range st.Working().Home().Scopes(t.Context()) {
		if n++; err != nil || s != workScope {
			t.Errorf("%v, %v", s, err)
		}
	}
	if n != 1 {
		t.Errorf("%d scopes", n)
	}
	fixture.Must(t, os.WriteFile(filepath.Join(dir, "working", "notes.json"), []byte("[]"), 0o600))
	info, err := st.Backup(t.Context(), filepath.Join(t.TempDir(), "copy"), varve.BackupOptions{})
	if err != nil || info.Scopes != 1 || len(info.Damaged) != 1 || info.Damaged[0].ID != "working/notes.json" {
		t.Errorf("scopes %d, damaged %+v, %v", info.Scopes, info.Damaged, err)
	}
}
