package notes

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// TestVanished: the loss of the whole folder of notes is an accident, which is not adopted and which
// Health names; the next read restores the files. A subfolder that is gone was deleted.
func TestVanished(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	write(t, st, "a.md", "one")
	write(t, st, "x/b.md", "two")
	must(t, st.Flush(t.Context()))
	must(t, os.RemoveAll(filepath.Join(dir, "notes")))
	h := st.Health(t.Context())
	if h.OK || !strings.Contains(errors.Join(h.Problems...).Error(), "notes is missing, with 2 files") {
		t.Errorf("%+v", h.Problems)
	}
	expect(t, st, map[string]string{"a.md": "one", "x/b.md": "two"})
	if h := st.Health(t.Context()); !h.OK {
		t.Errorf("%+v", h.Problems)
	}
	clean(t, st)
	must(t, os.RemoveAll(filepath.Join(dir, "notes", "x")))
	past := time.Now().Add(-time.Minute)
	must(t, os.Chtimes(filepath.Join(dir, "notes"), past, past))
	expect(t, st, map[string]string{"a.md": "one", "x/b.md": none})
	clean(t, st)
}

// TestSidecarDeleted: the properties of a note that is deleted by hand are deleted with it, and no other
// note at its path gets them. A file that has only the properties may be deleted too.
func TestSidecarDeleted(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	for _, path := range []string{"a.md", "b.md", "c.md"} {
		write(t, st, path, "text of "+path)
		_, err := st.Notes().SetProperties(t.Context(), path, varve.NoteProperties{Tags: []string{"tag"}})
		must(t, err)
	}
	must(t, st.Flush(t.Context()))
	must(t, os.Remove(at(dir, "a.md")))
	must(t, os.Remove(at(dir, "b.md")))
	must(t, os.Remove(filepath.Join(dir, "notes", ".varve", ".b.md.json")))
	must(t, os.Remove(filepath.Join(dir, "notes", ".varve", ".c.md.json")))
	await(t, st, "a.md", none)
	await(t, st, "b.md", none)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if n, err := st.Notes().Read(t.Context(), "c.md"); err == nil && len(n.Properties.Tags) == 0 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%+v, %v", n, err)
		}
	}
	for _, path := range []string{"a.md", "b.md"} {
		write(t, st, path, "another")
		if n, err := st.Notes().Read(t.Context(), path); err != nil || len(n.Properties.Tags) > 0 {
			t.Errorf("%+v, %v", n, err)
		}
	}
	must(t, st.Flush(t.Context()))
	if _, err := os.Stat(filepath.Join(dir, "notes", ".varve")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a sidecar is left: %v", err)
	}
	clean(t, st)
}

// TestExpired: an expired note is absent at once, and deleted with its properties an hour later, by the
// same rule as for memories; a clock that jumps deletes nothing.
func TestExpired(t *testing.T) {
	var ahead, up atomic.Int64
	up.Store(int64(time.Hour))
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(ahead.Load())) }
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), dir, storetest.In(
		&varve.Options{NoBackground: true, Clock: now},
		storetest.Environment{System: vfs.System{Uptime: func() time.Duration { return time.Duration(up.Load()) }}}))
	must(t, err)
	defer st.Close()
	write(t, st, "keep.md", "stays")
	write(t, st, "old/a.md", "goes")
	_, err = st.Notes().SetProperties(t.Context(), "old/a.md", varve.NoteProperties{ExpiresAt: now().Add(time.Minute)})
	must(t, err)
	must(t, st.Flush(t.Context()))
	sweep := func() bool {
		t.Helper()
		must(t, st.Flush(t.Context()))
		_, err := os.Stat(at(dir, "old/a.md"))
		return errors.Is(err, fs.ErrNotExist)
	}
	ahead.Add(int64(48 * time.Hour)) // the clock jumps, and no time passes
	expect(t, st, map[string]string{"keep.md": "stays", "old/a.md": none})
	for range 3 {
		if sweep() {
			t.Fatal("a clock that jumped has deleted a note")
		}
	}
	ahead.Add(int64(61 * time.Minute))
	up.Add(int64(61 * time.Minute))
	swept := sweep()
	if !swept { // the first one may only have noticed the time
		swept = sweep()
	}
	if !swept {
		t.Error("the note is not deleted")
	}
	if _, err := os.Stat(filepath.Join(dir, "notes", ".varve")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its properties are left: %v", err)
	}
	expect(t, st, map[string]string{"keep.md": "stays", "old/a.md": none})
	clean(t, st)
}

// has returns the files of a store that contain a text.
func has(t *testing.T, dir, text string) (list []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			list = append(list, path)
		}
		return err
	}))
	return list
}

// TestPurgeMoved: a purge of a note removes its properties, and its history at its earlier paths; a note
// that is at one of these now stays, with its own history. A version from before a rename can be
// redacted separately.
func TestPurgeMoved(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	ns := st.Notes()
	write(t, st, "first.md", "zebra one")
	write(t, st, "first.md", "zebra two")
	_, err := ns.Rename(t.Context(), "first.md", "second.md")
	must(t, err)
	write(t, st, "first.md", "another note")
	_, err = ns.Rename(t.Context(), "second.md", "third.md")
	must(t, err)
	_, err = ns.SetProperties(t.Context(), "third.md", varve.NoteProperties{Tags: []string{"zebratag"}})
	must(t, err)
	write(t, st, "keep.md", "gnu one")
	v := write(t, st, "keep.md", "gnu two")
	_, err = ns.Rename(t.Context(), "keep.md", "kept.md")
	must(t, err)
	write(t, st, "kept.md", "gnu three")
	must(t, st.Flush(t.Context()))
	_, err = ns.Purge(t.Context(), "third.md")
	must(t, err)
	expect(t, st, map[string]string{"first.md": "another note", "third.md": none, "kept.md": "gnu three"})
	if list := has(t, dir, "zebra"); len(list) > 0 {
		t.Errorf("left in %q", list)
	}
	_, err = ns.PurgeVersion(t.Context(), "kept.md", v.Version)
	must(t, err)
	_, err = st.Admin().OverwriteRedacted(t.Context())
	must(t, err)
	if list := has(t, dir, "gnu two"); len(list) > 0 {
		t.Errorf("left in %q", list)
	}
	if list := versions(t, st, "kept.md"); !slices.Contains(list, "gnu one") || slices.Contains(list, "gnu two") {
		t.Errorf("%q", list)
	}
	clean(t, st)
}
