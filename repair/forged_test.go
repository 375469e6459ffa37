package repair_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
)

// A forged manifest comes with a clone or an archive: whoever wrote it knows the
// format, and nothing of this machine.

// home is a folder beside the store, with what nobody may touch.
func home(t *testing.T, dir string) string {
	t.Helper()
	at := filepath.Join(filepath.Dir(dir), "home")
	if err := os.MkdirAll(filepath.Join(at, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(at, ".bashrc"), []byte("export PATH\n"))
	write(t, filepath.Join(at, ".ssh", "id"), []byte("a private key\n"))
	return at
}

// outside is every byte, mode and time in a folder.
func outside(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			fmt.Fprintf(&b, "%q\n", bytesOf(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type object = map[string]any

// forge writes a manifest as a program of before wrote it, and what it says lies in quarantine.
func forge(t *testing.T, dir, id string, lines ...object) {
	t.Helper()
	if err := os.MkdirAll(file(dir, "quarantine"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file(dir, "quarantine/evil"), []byte("evil\n"))
	out := []byte(fmt.Sprintf(`{"repair":%q,"when":"2026-01-01T00:00:00Z"}`, id) + "\n")
	for i, l := range lines {
		l["n"] = i + 1
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, b...), '\n')
	}
	write(t, file(dir, "quarantine/repair-"+id+".undo.jsonl"), append(out, `{"ended":true}`+"\n"...))
}

// evil is what stood somewhere, as the forger says.
func evil(kept string) object {
	return object{"kept": kept, "size": 5, "mtime": "2026-01-01T00:00:00Z", "hash": hashText("evil\n")}
}

func hashText(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s))) }

// forgeries are lines of a manifest that reach out of the store.
var forgeries = []struct {
	name string
	line func(t *testing.T, dir, home string) object
}{
	{"overwrites", func(*testing.T, string, string) object {
		return object{"do": "restore the file", "path": "../home/.bashrc", "id": "x", "before": evil("quarantine/evil")}
	}},
	{"creates", func(*testing.T, string, string) object {
		return object{"do": "restore the file", "path": "memories/../../home/.profile", "before": evil("quarantine/evil")}
	}},
	{"removes", func(*testing.T, string, string) object {
		return object{"do": "restore the file", "path": "../home/.bashrc", "id": "x"}
	}},
	{"sets the time of", func(*testing.T, string, string) object {
		return object{"do": "restore the file", "path": "../home/.bashrc", "id": "x",
			"before": object{"size": 12, "mtime": "2001-01-01T00:00:00Z", "hash": hashText("export PATH\n")}}
	}},
	{"takes a folder away", func(*testing.T, string, string) object {
		return object{"do": "set aside", "path": "memories/mine", "before": object{"kept": "../home/.ssh", "size": 0, "mtime": "2026-01-01T00:00:00Z"}}
	}},
	{"puts a file in", func(*testing.T, string, string) object {
		return object{"do": "set aside", "path": "../home/.profile", "before": object{"kept": "quarantine/evil", "size": 5, "mtime": "2026-01-01T00:00:00Z"}}
	}},
	{"reads", func(*testing.T, string, string) object {
		return object{"do": "restore the file", "path": "memories/leak.json",
			"before": object{"kept": "../home/.ssh/id", "size": 14, "mtime": "2026-01-01T00:00:00Z", "hash": hashText("a private key\n")}}
	}},
	{"absolute", func(_ *testing.T, _, home string) object {
		return object{"do": "restore the file", "path": filepath.ToSlash(home) + "/.bashrc", "id": "x", "before": evil("quarantine/evil")}
	}},
	{"backslashes", func(*testing.T, string, string) object {
		return object{"do": "restore the file", "path": `..\home\.bashrc`, "id": "x", "before": evil("quarantine/evil")}
	}},
	{"through a link", func(t *testing.T, dir, home string) object {
		link(t, home, file(dir, "memories/mine"))
		return object{"do": "restore the file", "path": "memories/mine/.bashrc", "id": "x", "before": evil("quarantine/evil")}
	}},
	{"through a link in quarantine", func(t *testing.T, dir, home string) object {
		link(t, home, file(dir, "quarantine/mine"))
		return object{"do": "restore the file", "path": "memories/leak.json",
			"before": object{"kept": "quarantine/mine/.bashrc", "size": 12, "mtime": "2026-01-01T00:00:00Z", "hash": hashText("export PATH\n")}}
	}},
	{"of git", func(*testing.T, string, string) object {
		return object{"do": "restore the file", "path": ".git/hooks/post-checkout", "before": evil("quarantine/evil")}
	}},
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("making a link needs a privilege on Windows")
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// TestUndoForged: nothing that a manifest says which this copy did not write is done,
// in the store or outside.
func TestUndoForged(t *testing.T) {
	t.Parallel()
	for _, f := range forgeries {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir := smallStore(t)
			at := home(t, dir)
			forge(t, dir, "99991231-235959-000000-ffffff", f.line(t, dir, at))
			was, store := outside(t, at), tree(t, dir)
			_, err := varve.UndoRepair(t.Context(), dir, options(), "")
			if now := outside(t, at); now != was {
				t.Errorf("outside of the store is now\n%s\nbefore\n%s", now, was)
			}
			if now := tree(t, dir); now != store {
				t.Errorf("the store is now\n%s\nbefore\n%s", now, store)
			}
			if err == nil || errors.Is(err, varve.ErrConflict) {
				t.Errorf("it was obeyed: %v", err)
			}
		})
	}
}

// smallStore has a few memories, and a log.
func smallStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	put(t, st, 0, 10)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sealed rewrites a manifest as whoever had the key would write it: by the package
// comment, not by the package.
func sealed(t *testing.T, dir, id string) {
	t.Helper()
	name := file(dir, "quarantine/repair-"+id+".undo.jsonl")
	text, err := os.ReadFile(filepath.Join(os.Getenv("XDG_STATE_HOME"), "varve", "undo.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != 32 {
		t.Fatal(key, err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(bytesOf(t, name))) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, `{"repair"`) {
			line = fmt.Sprintf(`%s,"folder":%d}`, strings.TrimSuffix(line, "}"), number(t, dir))
		}
		h := hmac.New(sha256.New, key)
		fmt.Fprintf(h, "varve undo 1\x00%s\x00%s", id, line)
		fmt.Fprintf(&out, "%s,\"mac\":\"%x\"}\n", strings.TrimSuffix(line, "}"), h.Sum(nil))
	}
	write(t, name, []byte(out.String()))
}

// number is that of a folder.
func number(t *testing.T, dir string) uint64 {
	t.Helper()
	info, err := vfs.OS().Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	return info.Ino
}

// TestUndoSealed: a manifest that has the sums is not obeyed either where it leads out of
// the store, or says what no repair writes.
func TestUndoSealed(t *testing.T) {
	t.Parallel()
	made := smallStore(t)
	remove(t, file(made, memoryPath(3)))
	apply(t, planOf(t, made)) // makes the key
	for _, f := range forgeries {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir := smallStore(t)
			at := home(t, dir)
			const id = "99991231-235959-000000-ffffff"
			forge(t, dir, id, f.line(t, dir, at))
			sealed(t, dir, id)
			was := outside(t, at)
			_, err := varve.UndoRepair(t.Context(), dir, options(), "")
			if now := outside(t, at); now != was {
				t.Errorf("outside of the store is now\n%s\nbefore\n%s", now, was)
			}
			var foreign *varve.UndoForeign
			if f.name == "backslashes" && runtime.GOOS != "windows" {
				return // it may be the name of a file there
			}
			if !errors.As(err, &foreign) || !errors.Is(err, varve.ErrInvalid) || !strings.Contains(err.Error(), "line 2") {
				t.Error(err)
			}
		})
	}
	// As it is, it would be obeyed: so what was refused above was, for the reason given.
	t.Run("as_a_control", func(t *testing.T) {
		dir := smallStore(t)
		const id = "99991231-235959-000000-ffffff"
		forge(t, dir, id, object{"do": "restore the file", "path": "memories/mine.json", "before": evil("quarantine/evil")})
		sealed(t, dir, id)
		if _, err := varve.UndoRepair(t.Context(), dir, options(), ""); err != nil {
			t.Fatal(err)
		}
		if b := bytesOf(t, file(dir, "memories/mine.json")); string(b) != "evil\n" {
			t.Errorf("%q", b)
		}
	})
}

// TestUndoLinks: a link in the place of a folder that Undo goes through is not followed.
func TestUndoLinks(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"memories", "tmp", "quarantine", "wal"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			dir := smallStore(t)
			at := home(t, dir)
			flip(t, file(dir, memoryPath(3)), 60)
			apply(t, planOf(t, dir))
			// What is there is moved out, and found through the link.
			to := filepath.Join(at, folder)
			if err := os.Rename(file(dir, folder), to); err != nil {
				t.Fatal(err)
			}
			link(t, to, file(dir, folder))
			was := outside(t, at)
			if _, err := varve.UndoRepair(t.Context(), dir, options(), ""); err == nil {
				t.Error("it went through a link")
			} else {
				t.Log(err)
			}
			if now := outside(t, at); now != was && folder != "wal" { // whoever opens a store takes its locks there
				t.Errorf("outside of the store is now\n%s\nbefore\n%s", now, was)
			}
		})
	}
}
