//go:build unix

package edits

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
)

// aside makes a folder beside a store with a file of each name, and returns a function that describes
// all of it.
func aside(t *testing.T, dir string, names ...string) (state func() string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte("private"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return func() (s string) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			var b []byte
			if e.Type().IsRegular() {
				b, err = os.ReadFile(path)
			}
			s += fmt.Sprintf("%s %s %d %x\n", path, info.Mode(), info.ModTime().UnixNano(), sha256.Sum256(b))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// A folder that becomes a link while the store is open is not followed either: nothing outside changes,
// operations that need the folder report it, and once the folder is back all work.
func TestLinkWhileOpen(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"memories", "tmp", "tmp/parked", "quarantine", "backups", "vector_index", "wal",
		"wal/archive"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			ctx, dir := context.Background(), t.TempDir()
			root, outside := filepath.Join(dir, "store"), filepath.Join(dir, "outside")
			st, err := varve.Open(ctx, root, &varve.Options{NoBackground: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = st.Close() }()
			put := func(text string) error {
				for i := range 4 {
					m := varve.Memory{ID: fmt.Sprint("m", i), Content: text, Embedding: []float32{1, 2, float32(i)}}
					if _, err := st.Put(ctx, m); err != nil {
						return err
					}
				}
				return nil
			}
			if err := errors.Join(put("one"), st.Flush(ctx)); err != nil {
				t.Fatal(err)
			}
			state := aside(t, outside, "id_rsa", "config", "m1.json", "sub/x", "open.lock", "mapping.json",
				"memories@m1.json@5@5@5@x-1")
			before := state()
			link := filepath.Join(root, filepath.FromSlash(place))
			if err := os.Rename(link, link+".was"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, link); err != nil {
				t.Fatal(err)
			}
			perr := put("two")
			ferr := st.Flush(ctx)
			_, gerr := st.Get(ctx, "m1")
			derr := st.Delete(ctx, "m2")
			perr2 := st.Admin().RebuildIndex(ctx)
			_, purged := st.Admin().Purge(ctx, "m3")
			t.Log(perr, ferr, gerr, derr, perr2, purged)
			for _, err := range []error{perr, ferr, gerr, derr, perr2, purged} {
				if err != nil && vfs.EnterError(err) == nil && !errors.Is(err, varve.ErrNotFound) &&
					!strings.Contains(err.Error(), "symbolic link") {
					t.Errorf("an error that does not name the link: %v", err)
				}
			}
			if after := state(); after != before {
				t.Errorf("what is outside has changed:\n%s\nwas\n%s", after, before)
			}
			if _, err := os.Lstat(link); err == nil {
				if err := os.Remove(link); err != nil && place != "tmp/parked" {
					t.Fatal(err)
				}
			}
			if err := os.Rename(link+".was", link); err != nil && !errors.Is(err, fs.ErrNotExist) &&
				!errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Log(err)
			}
			if st, err = varve.Open(ctx, root, nil); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(put("three"), st.Flush(ctx)); err != nil {
				t.Fatal(err)
			}
			if m, err := st.Get(ctx, "m1"); err != nil || m.Content != "three" {
				t.Fatal(m, err)
			}
		})
	}
}

// A link that came with a clone may have a name that a backup once had while it was unfinished: the
// folder that the link leads to was emptied.
func TestBackupPartialIsALink(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	st, err := varve.Open(ctx, filepath.Join(dir, "store"), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "one"}); err != nil {
		t.Fatal(err)
	}
	state := aside(t, filepath.Join(dir, "outside"), "id_rsa", "sub/config")
	before := state()
	for _, to := range []string{filepath.Join(dir, "store", "backups", "full"), filepath.Join(dir, "full")} {
		if err := os.Symlink(filepath.Join(dir, "outside"), to+".partial"); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Backup(ctx, to, varve.BackupOptions{}); err != nil {
			t.Errorf("a backup beside a link: %v", err)
		}
	}
	if after := state(); after != before {
		t.Errorf("%s\nbecame\n%s", before, after)
	}
}

// A store may be reached through links, as before.
func TestRootThroughLinks(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	for from, to := range map[string]string{"way": "store", "up": "."} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, at := range []string{"way", "up/store", "up/way", "store/"} {
		st, err := varve.Open(ctx, filepath.Join(dir, at)+"/", nil)
		if err != nil {
			t.Fatal(at, err)
		}
		id := fmt.Sprint(i)
		_, err = st.Put(ctx, varve.Memory{ID: id, Content: id, Embedding: []float32{1, 2}})
		if err = errors.Join(err, st.Flush(ctx)); err != nil {
			t.Fatal(at, err)
		}
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			if err != nil || f.Severity != varve.SeverityInfo {
				t.Error(at, f, err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(at, err)
		}
	}
}
