package repair_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// repaired is a store in which the file of memory 3 had rotted and was restored, with the
// bytes that undoing it brings back.
func repaired(t *testing.T) (dir string, rotten []byte, id string) {
	t.Helper()
	dir = smallStore(t)
	flip(t, file(dir, memoryPath(3)), 60)
	rotten = bytesOf(t, file(dir, memoryPath(3)))
	r := apply(t, planOf(t, dir))
	if r.NoUndo != nil {
		t.Fatal(r.NoUndo)
	}
	return dir, rotten, r.ID
}

func undone(t *testing.T, dir, id string, rotten []byte) {
	t.Helper()
	if _, err := varve.UndoRepair(t.Context(), dir, options(), id); err != nil {
		t.Fatal(err)
	}
	if b := bytesOf(t, file(dir, memoryPath(3))); !bytes.Equal(b, rotten) {
		t.Error("it is not as it was before the repair")
	}
}

// refused wants a *UndoForeign, and nothing changed.
func refused(t *testing.T, dir, id, reason string) *varve.UndoForeign {
	t.Helper()
	was := tree(t, dir)
	_, err := varve.UndoRepair(t.Context(), dir, options(), id)
	var foreign *varve.UndoForeign
	if !errors.As(err, &foreign) || !errors.Is(err, varve.ErrInvalid) || !strings.Contains(err.Error(), reason) {
		t.Fatalf("%v; want %q", err, reason)
	}
	if now := tree(t, dir); now != was {
		t.Errorf("something was changed:\n%s\nbefore\n%s", now, was)
	}
	return foreign
}

// TestUndoMoved: a store that was renamed, or moved by Migrate, is the one that was
// repaired; what was copied from it is not.
func TestUndoMoved(t *testing.T) {
	t.Parallel()
	t.Run("renamed", func(t *testing.T) {
		t.Parallel()
		dir, rotten, _ := repaired(t)
		to := filepath.Join(t.TempDir(), "elsewhere")
		if err := os.Rename(dir, to); err != nil {
			t.Skip("not on one file system: ", err)
		}
		undone(t, to, "", rotten)
	})
	t.Run("migrated", func(t *testing.T) {
		t.Parallel()
		dir, rotten, id := repaired(t)
		to, third := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "s")
		for _, step := range [][2]string{{dir, to}, {to, third}} {
			if _, err := varve.Migrate(t.Context(), step[0], step[1], &varve.MigrateOptions{Options: options(), Switch: true, RemoveSource: true}); err != nil {
				t.Fatal(err)
			}
			if left, err := filepath.Glob(file(step[0], "quarantine/*")); len(left) > 0 || err != nil {
				t.Errorf("%q stayed, %v", left, err)
			}
		}
		undone(t, third, id, rotten)
		undone(t, third, "", rotten) // once more: there is nothing to do
	})
	t.Run("copied", func(t *testing.T) {
		t.Parallel()
		dir, _, _ := repaired(t)
		to := filepath.Join(t.TempDir(), "copy")
		copyTree(t, dir, to)
		refused(t, to, "", "written for another copy of the store")
	})
	t.Run("through_a_link", func(t *testing.T) {
		t.Parallel()
		dir, rotten, _ := repaired(t)
		name := filepath.Join(t.TempDir(), "link")
		link(t, dir, name)
		undone(t, name, "", rotten)
	})
}

// TestUndoNewest: whose name is the greatest does not win, nor is what lies under it passed
// over without a word.
func TestUndoNewest(t *testing.T) {
	t.Parallel()
	dir, rotten, id := repaired(t)
	forge(t, dir, "99991231-235959-000000-ffffff", object{"do": "restore the file", "path": "memories/mine.json", "before": evil("quarantine/evil")})
	for range 2 {
		if f := refused(t, dir, "", "has no checksum of this copy"); f.Newest != id || !strings.Contains(f.Fix(), "--undo "+id) {
			t.Errorf("%+v", f)
		}
	}
	// The true one under a greater name.
	name := func(id string) string { return file(dir, "quarantine/repair-"+id+".undo.jsonl") }
	write(t, name("99991231-235959-000000-ffffff"), bytesOf(t, name(id)))
	refused(t, dir, "", "not of this user")
	refused(t, dir, "99991231-235959-000000-ffffff", "not of this user")
	// A control character in a name does not reach a terminal.
	if runtime.GOOS != "windows" {
		write(t, name("99991231-235959-000000-ffffff\x1b]0;x\a"), nil)
		if f := refused(t, dir, "", "nothing is in it"); strings.ContainsAny(f.Error()+f.Fix(), "\x1b\a") {
			t.Errorf("%q", f.Error())
		}
	}
	undone(t, dir, id, rotten)
}

// TestUndoTampered: each line is obeyed as it was written, or not at all.
func TestUndoTampered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, what, by, reason string }{
		{"the folder", `"folder":`, `"folder":1`, "not of this user"},
		{"the path", `"path":"memories/`, `"path":"memories/x`, ""},
		{"the kept file", `"kept":"quarantine/`, `"kept":"quarantine/x`, ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir, rotten, id := repaired(t)
			name := file(dir, "quarantine/repair-"+id+".undo.jsonl")
			b := bytesOf(t, name)
			if !bytes.Contains(b, []byte(c.what)) {
				t.Fatalf("%s", b)
			}
			write(t, name, bytes.Replace(b, []byte(c.what), []byte(c.by), 1))
			if c.reason != "" {
				refused(t, dir, "", c.reason)
				return
			}
			// A line that does not verify was cut as it was written: its change had not begun.
			r, err := varve.UndoRepair(t.Context(), dir, options(), "")
			if err == nil && len(r.Undone) > 0 || bytes.Equal(bytesOf(t, file(dir, memoryPath(3))), rotten) {
				t.Errorf("it was obeyed: %+v, %v", r, err)
			}
		})
	}
	t.Run("what_was_kept", func(t *testing.T) {
		t.Parallel()
		for _, by := range []string{"short", ""} {
			dir, rotten, _ := repaired(t)
			now := bytesOf(t, file(dir, memoryPath(3)))
			kept := file(dir, first(t, dir, "quarantine/*"+id(3)+".json"))
			if by == "" { // of the same size
				by = string(bytes.ToUpper(rotten))
			}
			remove(t, kept)
			write(t, kept, []byte(by))
			_, err := varve.UndoRepair(t.Context(), dir, options(), "")
			if !errors.Is(err, varve.ErrCorrupt) {
				t.Error(err)
			}
			if !bytes.Equal(bytesOf(t, file(dir, memoryPath(3))), now) {
				t.Error("it was put back all the same")
			}
		}
	})
}

// TestUndoBounds: what cannot be a manifest is refused at once, whatever its size.
func TestUndoBounds(t *testing.T) {
	t.Parallel()
	dir, rotten, id := repaired(t)
	const other = "99991231-235959-000000-ffffff"
	name := file(dir, "quarantine/repair-"+other+".undo.jsonl")
	for what, make := range map[string]func(){
		"has 8796093022208 bytes": func() {
			write(t, name, nil)
			if err := os.Truncate(name, 8<<40); err != nil {
				t.Skip("no sparse files: ", err)
			}
		},
		"has no checksum of this copy": func() { write(t, name, bytes.Repeat([]byte("\n"), 8<<20)) },
		"nothing is in it":             func() { write(t, name, bytes.Repeat([]byte(`{"n":1,`), 4<<20)) }, // one line, cut
		"it is no file": func() {
			if err := os.Mkdir(name, 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		make()
		refused(t, dir, other, what)
		remove(t, name)
	}
	if runtime.GOOS != "windows" {
		link(t, file(dir, "quarantine/repair-"+id+".undo.jsonl"), name)
		refused(t, dir, other, "it is no file")
		remove(t, name)
	}
	// The last line was cut in the middle, and garbage stands behind it: one line more is
	// passed over, and an undo writes its own behind it.
	mine := file(dir, "quarantine/repair-"+id+".undo.jsonl")
	b := bytesOf(t, mine)
	write(t, mine, append(b, append(bytes.Repeat([]byte{0}, 200<<10), `{"n":9,"do":"set aside","path":"config.json"}`...)...))
	undone(t, dir, id, rotten)
	undone(t, dir, id, rotten)
}

// TestUndoNoKey: without a place for a key a store is repaired, and says that it cannot
// be undone; with another key than that of the repair neither.
func TestUndoNoKey(t *testing.T) {
	t.Parallel()
	file1 := filepath.Join(t.TempDir(), "file")
	write(t, file1, nil)
	with := func(state string) *varve.Options {
		o := options()
		o.StateDir = state
		return o
	}
	repairWith := func(dir, state string) error {
		flip(t, file(dir, memoryPath(3)), 60)
		p, err := varve.PlanRepair(t.Context(), dir, with(state), varve.VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return apply(t, p).NoUndo
	}
	dir := smallStore(t)
	if err := repairWith(smallStore(t), options().StateDir); err != nil { // makes the tests' key
		t.Fatal(err)
	}
	for _, state := range []string{filepath.Join(file1, "state"), filepath.Join(dir, "state")} {
		if err := repairWith(dir, state); err == nil || !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("%s: %v", state, err)
		}
		_, err := varve.UndoRepair(t.Context(), dir, with(state), "")
		if foreign := (*varve.UndoForeign)(nil); !errors.As(err, &foreign) {
			t.Errorf("%s: %v", state, err)
		}
	}
	refused(t, dir, "", "has no checksum of this copy")
	if _, err := os.Stat(filepath.Join(dir, "state")); err == nil {
		t.Error("a key is in the store")
	}
	state := t.TempDir()
	if err := repairWith(dir, state); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "", "not of this user") // by the tests' key
	key := filepath.Join(state, "undo.key")
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		if err := os.Chmod(key, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := varve.UndoRepair(t.Context(), dir, with(state), ""); err == nil || !strings.Contains(err.Error(), "others may read it") {
			t.Error(err)
		}
		if err := os.Chmod(key, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was := bytesOf(t, key)
	write(t, key, []byte("short\n"))
	if _, err := varve.UndoRepair(t.Context(), dir, with(state), ""); err == nil || !strings.Contains(err.Error(), "not a key") {
		t.Error(err)
	}
	write(t, key, was)
	if _, err := varve.UndoRepair(t.Context(), dir, with(state), ""); err != nil {
		t.Error(err)
	}
}

// TestUndoWithoutVersion: of a document of which nothing says as which version it was
// written, the file tells whether it changed since.
func TestUndoWithoutVersion(t *testing.T) {
	t.Parallel()
	_, _, _ = repaired(t) // makes the key
	dir := smallStore(t)
	const manifest = "99991231-235959-000000-ffffff"
	b := bytesOf(t, file(dir, memoryPath(3)))
	forge(t, dir, manifest, object{"do": "salvage", "path": memoryPath(3), "id": id(3), "was": 1, "any": true, "before": evil("quarantine/evil")})
	sealed(t, dir, manifest)
	_, err := varve.UndoRepair(t.Context(), dir, options(), "")
	if e := (*varve.UndoRefused)(nil); !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
	if !bytes.Equal(bytesOf(t, file(dir, memoryPath(3))), b) {
		t.Error("it was put back over what is there")
	}
}
