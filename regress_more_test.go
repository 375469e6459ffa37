package varve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// TestRegressFolderInThePlaceOfAFile verifies that something in the place of a memory's file that is not a file does
// not hide the version of the log or of its archive, even in a store that is only read; and that it is moved aside if
// that is possible.
func TestRegressFolderInThePlaceOfAFile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	things := map[string]func(path string) error{
		"a folder": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "mine.txt"), []byte("keep me"), 0o600))
		},
		"a link": func(path string) error { return os.Symlink("/etc/passwd", path) },
	}
	for what, put := range things {
		for _, where := range []string{"log", "index", "archive"} {
			t.Run(what+"/"+where, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "s")
				st := fixture.Open(t, dir, fixture.SmallLog)
				if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "here"}); err != nil {
					t.Fatal(err)
				}
				if err := st.Flush(ctx); err != nil {
					t.Fatal(err)
				}
				if where == "index" {
					if err := st.Admin().Compact(ctx); err != nil {
						t.Fatal(err)
					}
				}
				for i := 0; where == "archive" && i < 40; i++ {
					if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("n", i%2), Content: strings.Repeat("x", 10000)}); err != nil {
						t.Fatal(err)
					}
					if err := st.Admin().Compact(ctx); err != nil {
						t.Fatal(err)
					}
				}
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, "memories", jsondoc.FileName("a"))
				if err := errors.Join(os.Remove(path), put(path)); err != nil {
					t.Skipf("shared data: this system makes no %s: %v", what, err)
				}
				for _, o := range []*varve.Options{{ReadOnly: true}, fixture.SmallLog} {
					st := fixture.Open(t, dir, o)
					m, err := st.Get(ctx, "a")
					if err != nil || m.Content != "here" {
						t.Fatalf("read-only %v: %q, %v", o.ReadOnly, m.Content, err)
					}
					if err := st.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
					t.Error("the file was not put back:", info, err)
				}
				aside := fixture.Quarantined(t, dir) // with its note
				if len(aside) != 2 || aside[1] != aside[0]+".note.json" {
					t.Fatal(aside)
				}
				if b, err := os.ReadFile(filepath.Join(dir, "quarantine", aside[0],
					"mine.txt")); what == "a folder" && (err != nil || string(b) != "keep me") {
					t.Error(err)
				}
			})
		}
	}
}

// TestRegressFlippedMember verifies that a flipped bit in the name of the member that marks a store does not make it
// count as another program's folder: the log is beside it.
func TestRegressFlippedMember(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, nil)
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "here"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "config.json")
	fixture.Alter(t, name, func(b []byte) []byte { return bytes.Replace(b, []byte(`"varve"`), []byte(`"warve"`), 1) })
	for _, o := range []*varve.Options{{ReadOnly: true}, {}, {MustExist: true}} {
		st := fixture.Open(t, dir, o)
		if m, err := st.Get(ctx, "a"); err != nil || m.Content != "here" {
			t.Fatal(m, err)
		}
		if p := st.Admin().OpenReport().Problems; len(p) != 1 || !errors.Is(p[0], varve.ErrInvalid) ||
			!strings.Contains(p[0].Error(), "config.json") {
			t.Error(p)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Without a log it counts as another program's.
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
		t.Fatal(err)
	}
	if st, err := varve.Open(ctx, dir, nil); !errors.Is(err, varve.ErrNoStore) {
		if err == nil {
			st.Close()
		}
		t.Error(err)
	}
}

// TestRegressReplaceReadsOnce verifies that a put that replaces a version looks that version up once.
func TestRegressReplaceReadsOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var reads atomic.Int64
	fsys := wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		if op.Kind == wrap.Read && strings.HasSuffix(op.Path, ".wal") {
			reads.Add(1)
		}
		return call()
	})
	o := *fixture.SmallLog
	o.CacheBytes = -1
	storetest.Of(&o).System = vfs.System{FS: fsys}
	st := fixture.Open(t, filepath.Join(t.TempDir(), "s"), &o)
	defer st.Close()
	put := func(id string) int64 {
		t.Helper()
		reads.Store(0)
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "x"}); err != nil {
			t.Fatal(err)
		}
		return reads.Load()
	}
	made := put("a")
	reads.Store(0)
	if _, err := st.Get(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	one := reads.Load()
	if n := put("a") - made; one == 0 || n > one {
		t.Errorf("a replacing put reads %d times more than one that makes; a Get reads %d times", n, one)
	}
}
