package over

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/varve-db/varve/internal/vfs"
)

// TestOver: operations through the overlay have the same results as in an ordinary folder, and the lower
// folder stays unchanged.
func TestOver(t *testing.T) {
	t.Parallel()
	lower := t.TempDir()
	fill(t, lower)
	before := content(t, vfs.OS(), lower)
	rapid.Check(t, func(r *rapid.T) {
		own, err := os.MkdirTemp("", "")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(own)
		plain, upper := filepath.Join(own, "plain"), filepath.Join(own, "upper")
		if err := errors.Join(os.Mkdir(plain, 0o700), os.Mkdir(upper, 0o700)); err != nil {
			r.Fatal(err)
		}
		fill(t, plain)
		over := New(vfs.OS(), lower, upper)
		names := rapid.SampledFrom([]string{"a", "b", "c", "x/a", "x/b", "x/y/a", "z/a", "x", "z", "x/y"})
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			name, other := names.Draw(r, "name"), names.Draw(r, "other")
			op := rapid.SampledFrom([]string{"write", "new", "cut", "remove", "rename", "new name", "mkdir"}).Draw(r, "op")
			do := func(f vfs.FS, dir string) error {
				path, to := filepath.Join(dir, name), filepath.Join(dir, other)
				if info, err := f.Stat(path); strings.HasSuffix(op, "name") && err == nil && info.Mode.IsDir() {
					return nil // no store does that
				}
				switch op {
				case "remove":
					return f.Remove(path)
				case "rename":
					return f.Rename(path, to)
				case "new name":
					return f.RenameNew(path, to)
				case "mkdir":
					return f.Mkdir(path, 0o700)
				}
				flag := map[string]int{"write": os.O_RDWR, "new": os.O_RDWR | os.O_CREATE | os.O_EXCL, "cut": os.O_RDWR | os.O_CREATE | os.O_TRUNC}[op]
				file, err := f.OpenFile(path, flag, 0o600)
				if err != nil {
					return err
				}
				_, err = file.WriteAt([]byte(op), 1)
				return errors.Join(err, file.Close())
			}
			got, want := do(over, lower), do(vfs.OS(), plain)
			sameKind := errors.Is(want, fs.ErrNotExist) == errors.Is(got, fs.ErrNotExist) && errors.Is(want, fs.ErrExist) == errors.Is(got, fs.ErrExist)
			if (got == nil) != (want == nil) || !sameKind && !strings.HasSuffix(op, "name") { // with two names, either may be the reason
				r.Fatalf("%s %s %s: %v, want %v", op, name, other, got, want)
			}
			if got, want := content(t, over, lower), content(t, vfs.OS(), plain); got != want {
				r.Fatalf("%s %s %s:\n%s\nwant\n%s", op, name, other, got, want)
			}
		}
	})
	if after := content(t, vfs.OS(), lower); after != before {
		t.Errorf("the lower folder has\n%s\nbefore\n%s", after, before)
	}
}

func fill(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"a", "b", "x/a", "x/y/a"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("the file "+name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// content returns everything in a folder.
func content(t *testing.T, f vfs.FS, dir string) string {
	var b strings.Builder
	var walk func(at string)
	walk = func(at string) {
		names, err := f.ReadDir(at)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		for _, name := range names {
			path := filepath.Join(at, name)
			info, err := f.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(strings.TrimPrefix(path, dir))
			if info.Mode.IsDir() {
				b.WriteString("\n")
				walk(path)
				continue
			}
			text, err := vfs.ReadFile(f, path, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(": " + string(text) + "\n")
		}
	}
	walk(dir)
	return b.String()
}

// TestTemporary: the folder is removed when its process ends, or, if the process was killed, by the next
// one that creates such a folder. FAILURES 169: a user's folder with such a name, and what a user has
// put into one, stays.
func TestTemporary(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if os.TempDir() != temp {
		t.Skip("the system's temporary folder has another name")
	}
	known := func(rel string, _ bool) bool { return rel == "checkpoint" }
	_, remove, err := Temporary(t.TempDir(), known, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	make := func(name string, mark bool, files ...string) {
		t.Helper()
		dir := filepath.Join(temp, prefix+name)
		err := os.Mkdir(dir, 0o700)
		if err == nil && mark {
			err = vfs.WriteMark(vfs.OS(), dir, vfs.Mark{Kind: kind}, 0o600)
		}
		for _, f := range files {
			err = errors.Join(err, os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o700), os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	make("killed", true, lockName, filesIn+"/checkpoint")
	make("cut", true) // before it was locked
	make("begun", false)
	make("notes", false, filesIn+"/letter") // all the names are names of ours
	make("mixed", true, lockName, filesIn+"/checkpoint", filesIn+"/letter")
	old := time.Now().Add(-time.Hour)
	list, _ := filepath.Glob(filepath.Join(temp, "*"))
	for _, path := range list {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	_, again, err := Temporary(t.TempDir(), known, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if list, _ := filepath.Glob(filepath.Join(temp, "*")); len(list) != 4 {
		t.Error(list)
	}
	if err := errors.Join(remove(), again()); err != nil {
		t.Error(err)
	}
	if list, _ := filepath.Glob(filepath.Join(temp, "*", filesIn, "*")); len(list) != 3 {
		t.Error(list)
	}
}
