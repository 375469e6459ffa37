package repair_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/vfs"
)

// The other files in which a store, or a backup, names paths: each is written here as an attacker would
// write it, and no file outside may change.

// TestPathsOfNotes: notes of migrations and of what was set aside, ids, and the names of
// parked files.
func TestPathsOfNotes(t *testing.T) {
	t.Parallel()
	const move = `"id":"11111111-1111-4111-8111-111111111111","store":"22222222-2222-4222-8222-222222222222"`
	use := func(t *testing.T, dir string) {
		if st, err := varve.Open(t.Context(), dir, options()); err == nil {
			_, perr := st.Put(t.Context(), varve.Memory{ID: "m-00003", Content: "another"})
			_, verr := st.Admin().Purge(t.Context(), "m-00004")
			t.Log(perr, verr, st.Flush(t.Context()), st.Close())
		} else {
			t.Log(err)
		}
		if p, err := varve.PlanRepair(t.Context(), dir, options(), varve.VerifyOptions{}); err == nil {
			_, err = p.Apply(t.Context())
			t.Log(err)
		}
	}
	for _, to := range []string{"../home", "/abs", "../home/.ssh/id"} {
		for _, c := range []struct {
			name  string
			write func(t *testing.T, dir, to string)
		}{
			{"moved.json", func(t *testing.T, dir, to string) {
				write(t, file(dir, "moved.json"), []byte(fmt.Sprintf(`{"varve_moved":1,%s,"to":%q,"when":"2026-01-01T00:00:00Z"}`, move, to)))
				write(t, file(dir, "moved.json.files"), []byte(`{"varve_moved_files":1,"id":"11111111-1111-4111-8111-111111111111"}`+"\n"))
				for _, remove := range []bool{false, true} {
					_, err := varve.Migrate(t.Context(), dir, to, &varve.MigrateOptions{Options: options(), Switch: true, RemoveSource: remove})
					if err == nil {
						t.Error("a forged note has moved it")
					}
				}
			}},
			{"wal moved.json", func(t *testing.T, dir, to string) {
				write(t, file(dir, "wal/moved.json"), []byte(fmt.Sprintf(`{"varve_moved":1,%s,"to":%q,"when":"2026-01-01T00:00:00Z"}`, move, to)))
			}},
			{"migrate.json", func(t *testing.T, dir, to string) {
				write(t, file(dir, "migrate.json"), []byte(fmt.Sprintf(`{"varve_migration":1,%s,"from":%q,"state":"ready","began":"2026-01-01T00:00:00Z"}`, move, to)))
			}},
			{"a note of quarantine", func(t *testing.T, dir, to string) {
				if err := os.MkdirAll(file(dir, "quarantine"), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, file(dir, "quarantine/0123456789abcdef-m-00004.json"), []byte(`{"id":"m-00004"}`))
				write(t, file(dir, "quarantine/0123456789abcdef-m-00004.json.note.json"), []byte(fmt.Sprintf(`{"why":"x","from":%q,"id":"m-00004"}`, to)))
			}},
			{"an id", func(t *testing.T, dir, to string) {
				b := strings.Replace(string(bytesOf(t, file(dir, memoryPath(3)))), `"`+id(3)+`"`, fmt.Sprintf("%q", to), 1)
				write(t, file(dir, "memories/new.json"), []byte(b))
			}},
			{"a parked file", func(t *testing.T, dir, to string) {
				if err := os.MkdirAll(file(dir, "tmp/parked"), 0o700); err != nil {
					t.Fatal(err)
				}
				for _, folder := range []string{"..", "memories", ""} {
					write(t, file(dir, "tmp/parked/"+folder+"@home@-1@0@0@x-1"), []byte("evil\n"))
				}
			}},
		} {
			t.Run(strings.NewReplacer(" ", "_", "/", "_").Replace(c.name+" "+to), func(t *testing.T) {
				t.Parallel()
				dir := smallStore(t)
				at := home(t, dir)
				if to == "/abs" {
					to = filepath.ToSlash(at) + "/.bashrc"
				}
				was := outside(t, at)
				c.write(t, dir, to)
				use(t, dir)
				if now := outside(t, at); now != was {
					t.Errorf("outside of the store is now\n%s\nbefore\n%s", now, was)
				}
			})
		}
	}
}

// TestPathsOfBackup: a backup names its files; one that names others is damaged.
func TestPathsOfBackup(t *testing.T) {
	t.Parallel()
	dir := smallStore(t)
	st := openStore(t, dir, options())
	made := filepath.Join(t.TempDir(), "backup")
	if _, err := st.Backup(t.Context(), made, varve.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	at := home(t, made)
	for _, name := range []string{"../home/.bashrc", "memories/../../home/.bashrc", "memories/../x", "memories/..", "memories/.", `memories/..\..\home\.bashrc`,
		filepath.ToSlash(at) + "/.bashrc", "memories//.bashrc", "memories/\x00"} {
		t.Run(strings.NewReplacer("/", "_", "\x00", "NUL").Replace(name), func(t *testing.T) {
			dir := filepath.Join(filepath.Dir(made), "forged")
			fixture.CopyDir(t, made, dir)
			defer os.RemoveAll(dir)
			list := string(bytesOf(t, file(dir, "files.sha256")))
			list = fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte("export PATH\n")), name) + list[strings.Index(list, "\n")+1:]
			write(t, file(dir, "files.sha256"), []byte(list))
			info, err := backup.ReadInfo(vfs.OS(), dir)
			if err != nil {
				t.Fatal(err)
			}
			info.List, info.Sum = fmt.Sprintf("%x", sha256.Sum256([]byte(list))), ""
			b, err := json.Marshal(&info)
			if err != nil {
				t.Fatal(err)
			}
			info.Sum = fmt.Sprintf("%x", sha256.Sum256(b))
			if b, err = json.Marshal(&info); err != nil {
				t.Fatal(err)
			}
			write(t, file(dir, "backup.json"), b)
			if _, err := backup.ReadInfo(vfs.OS(), dir); err != nil {
				t.Fatal("the forgery is not one: ", err)
			}
			was := outside(t, at)
			to := filepath.Join(t.TempDir(), "restored")
			if _, err := varve.Restore(t.Context(), dir, to, &varve.RestoreOptions{Strict: true}); !errors.Is(err, varve.ErrCorrupt) {
				t.Error(err)
			}
			if _, err := os.Stat(to); err == nil {
				t.Error("it was restored")
			}
			if r, err := varve.Restore(t.Context(), dir, to, nil); err == nil && len(r.Damage) == 0 {
				t.Error("restored without a word")
			}
			if now := outside(t, at); now != was {
				t.Errorf("outside is now\n%s\nbefore\n%s", now, was)
			}
		})
	}
}

// TestPathsThroughLinks: where a link beside a backup, or beside a restored store, leads, nothing is
// removed, whatever the name of the link.
func TestPathsThroughLinks(t *testing.T) {
	t.Parallel()
	dir := smallStore(t)
	at := home(t, dir)
	st := openStore(t, dir, options())
	to := filepath.Join(t.TempDir(), "backup")
	link(t, at, to+".partial")
	was := outside(t, at)
	if _, err := st.Backup(t.Context(), to, varve.BackupOptions{}); err != nil {
		t.Error(err)
	}
	whole := filepath.Join(t.TempDir(), "whole")
	if _, err := st.Backup(t.Context(), whole, varve.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	link(t, at, restored+".partial")
	if _, err := varve.Restore(t.Context(), whole, restored, nil); err != nil {
		t.Error(err)
	}
	if now := outside(t, at); now != was {
		t.Errorf("outside is now\n%s\nbefore\n%s", now, was)
	}
	// A file that a link in a backup's folder leads to is not part of the backup.
	moved := filepath.Join(at, "memories")
	if err := os.Rename(filepath.Join(whole, "memories"), moved); err != nil {
		t.Fatal(err)
	}
	link(t, moved, filepath.Join(whole, "memories"))
	if _, err := varve.Restore(t.Context(), whole, filepath.Join(t.TempDir(), "r"), nil); err == nil {
		t.Error("it was read through a link")
	}
}

// home makes a folder beside the store, whose files must not be changed.
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

// outside returns every byte, mode and time in a folder.
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

// smallStore makes a store with a few memories and a log.
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
