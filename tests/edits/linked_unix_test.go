//go:build unix

package edits

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// linkTree copies a tree as cp -al does.
func linkTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.Mkdir(at, 0o700)
		}
		return os.Link(path, at)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// copyTree copies a tree as cp -a does.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// cp -al makes two folders with one log. The original folder continues; the other gets an error, and is
// read from its own files.
func TestLinkedCopy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		open bool // the store is open while it is linked, and continues
		more int  // puts of the home after it
		last bool // the copy is opened first
		lost bool // the page is gone: the machine lost power
	}{
		{name: "closed"}, {name: "copy first", last: true}, {name: "open", open: true, more: 300},
		{name: "written", more: 300}, {name: "page lost", lost: true, last: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			home, copied := filepath.Join(t.TempDir(), "home"), filepath.Join(t.TempDir(), "copy")
			st := fixture.Open(t, home, fixture.SmallLog)
			fixture.Put(t, st, "a")
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			fixture.Put(t, st, "b")
			if !c.open {
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
			}
			linkTree(t, home, copied)
			if c.lost {
				for _, dir := range []string{home, copied} {
					if err := os.Remove(filepath.Join(dir, "wal", "shared")); err != nil {
						t.Fatal(err)
					}
				}
			}
			reads := func(when string) {
				t.Helper()
				var told *varve.LinkedError
				ro, err := varve.Open(ctx, copied, &varve.Options{ReadOnly: true})
				if err != nil {
					t.Fatalf("%s: to read: %v", when, err)
				}
				if h := ro.Health(ctx); h.OK || h.Writable || !errors.As(h.ReadOnly, &told) {
					t.Errorf("%s: the health of the copy, opened to read: %+v", when, h)
				}
				if err := ro.Close(); err != nil {
					t.Errorf("%s: closing the copy: %v", when, err)
				}
				told = nil
				cp, err := varve.Open(ctx, copied, fixture.SmallLog)
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				defer func() {
					if err := cp.Close(); err != nil {
						t.Errorf("%s: closing the copy: %v", when, err)
					}
				}()
				for _, id := range []string{"a", "b"} {
					if _, err := cp.Get(ctx, id); err != nil {
						t.Errorf("%s: the copy: get %s: %v", when, id, err)
					}
				}
				if _, err := cp.Put(ctx, varve.Memory{ID: "x", Content: "of the copy"}); !errors.As(err, &told) || !errors.Is(err,
					varve.ErrReadOnly) {
					t.Fatalf("%s: a put into the copy: %v", when, err)
				}
				if !strings.Contains(told.Error(), "cp -a "+copied) {
					t.Errorf("%s: no remedy: %v", when, told)
				}
				if h := cp.Health(ctx); h.OK || h.Writable || !errors.As(errors.Join(h.Problems...), &told) {
					t.Errorf("%s: the health of the copy: %+v", when, h)
				}
			}
			if c.last || c.open {
				reads("before the home")
			}
			if !c.open {
				st = fixture.Open(t, home, fixture.SmallLog)
			}
			if h := st.Health(ctx); !h.Writable {
				t.Errorf("the home: %+v", h)
			}
			for n := range c.more {
				if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: strings.Repeat("of the home ", 100+n%7)}); err != nil {
					t.Fatal(err)
				}
				if n%100 == 99 {
					if err := st.Flush(ctx); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := st.Put(ctx, varve.Memory{ID: "h", Content: "of the home"}); err != nil {
				t.Fatal(err)
			}
			reads("beside the home")
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			reads("behind the home")

			// The remedy makes a store that accepts writes, and the home stays one.
			plain := filepath.Join(t.TempDir(), "plain")
			copyTree(t, copied, plain)
			for _, dir := range []string{plain, home} {
				st := fixture.Open(t, dir, fixture.SmallLog)
				for _, id := range []string{"a", "b"} {
					if _, err := st.Get(ctx, id); err != nil {
						t.Errorf("%s: %s: %v", dir, id, err)
					}
				}
				if _, err := st.Put(ctx, varve.Memory{ID: "p", Content: "again"}); err != nil {
					t.Errorf("%s: %v", dir, err)
				}
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			}
			// Once the home is gone the copy has files of its own.
			if err := os.RemoveAll(home); err != nil {
				t.Fatal(err)
			}
			cp := fixture.Open(t, copied, fixture.SmallLog)
			if _, err := cp.Put(ctx, varve.Memory{ID: "x", Content: "alone by now"}); err != nil {
				t.Error(err)
			}
			if err := cp.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A store that was moved keeps its home, with or without links.
func TestLinkedHomeMoved(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	home, copied := filepath.Join(t.TempDir(), "home"), filepath.Join(t.TempDir(), "copy")
	st := fixture.Open(t, home, fixture.SmallLog)
	fixture.Put(t, st, "a")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	linkTree(t, home, copied)
	moved := home + "-moved"
	if err := os.Rename(home, moved); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, moved, fixture.SmallLog)
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "moved"}); err != nil {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}

// If no home was recorded, as by an older program, the first folder that opens the log to write becomes
// the home.
func TestLinkedUnrecorded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	st := fixture.Open(t, one, fixture.SmallLog)
	fixture.Put(t, st, "a")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	// What an older program leaves: zeros in word 33 and behind the slots.
	zero := func(name string, at ...int64) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(one, name), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, at := range at {
			if _, err := f.WriteAt(make([]byte, 8), at); err != nil {
				t.Fatal(err)
			}
		}
	}
	zero("wal/shared", 33*8)
	zero("checkpoint", 160, 168, 4096+160, 4096+168)
	linkTree(t, one, two)
	st = fixture.Open(t, two, fixture.SmallLog)
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "first"}); err != nil {
		t.Error(err)
	}
	other := fixture.Open(t, one, fixture.SmallLog)
	var told *varve.LinkedError
	if _, err := other.Put(ctx, varve.Memory{ID: "a", Content: "second"}); !errors.As(err, &told) {
		t.Errorf("the second folder: %v", err)
	}
	if err := errors.Join(other.Close(), st.Close()); err != nil {
		t.Error(err)
	}
}
