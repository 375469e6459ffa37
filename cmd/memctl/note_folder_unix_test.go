//go:build linux || darwin

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// moved is the report of note import and note export.
type moved struct {
	New, Same, Kept, Replaced, Refused, Hidden int
	Empty                                      int `json:"empty_folders"`
	Problems                                   []struct{ Path, Kind, Reason string }
	Counts                                     map[string]int
}

func (c *inProcess) moved(t *testing.T, args ...string) (code int, m moved) {
	t.Helper()
	code, out, _ := c.run("", append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return code, m
}

// TestNoteImportHostile: a folder with all that cannot be a note. The rest is imported, and comes out again byte for
// byte with its times.
func TestNoteImportHostile(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	in, secret := filepath.Join(c.dir, "in"), filepath.Join(c.dir, "secret")
	writeFile(t, filepath.Join(secret, "key"), "secret")
	random := make([]byte, 16<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	deep := strings.Repeat("d/", 19)
	good := map[string]string{
		"crlf.md": "\ufeffa\r\nb\r\n", "empty": "", "binary": "\x00\xff\xfe", "limit": string(random), deep + "leaf": "x",
		"caf\u00e9.md": "form C", "100%.md": "x", "%2Ehidden": "x", "a b/CON.txt": "x", "back\\slash": "x",
		strings.Repeat("n", 255): "x", "UPPER": "x", "upper": "y",
	}
	if runtime.GOOS == "darwin" {
		delete(good, "UPPER") // the file system ignores case
	}
	old := time.Date(2019, 5, 6, 7, 8, 9, 123456000, time.UTC)
	for name, text := range good {
		writeFile(t, filepath.Join(in, name), text)
		if err := os.Chtimes(filepath.Join(in, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	bad := map[string]string{ // path: kind
		"new\nline": "name", "zero\u200bwidth": "name", deep + "d": "name", "big": "too large",
	}
	writeFile(t, filepath.Join(in, "new\nline"), "x")
	writeFile(t, filepath.Join(in, "zero\u200bwidth"), "x")
	writeFile(t, filepath.Join(in, deep+"d/too-deep"), "x")
	writeFile(t, filepath.Join(in, "big"), string(random)+"x")
	if runtime.GOOS == "linux" { // macOS refuses the one name, and takes the other one for that in form C
		bad["not\xffutf8"], bad["cafe\u0301.md"] = "name", "name"
		writeFile(t, filepath.Join(in, "not\xffutf8"), "x")
		writeFile(t, filepath.Join(in, "cafe\u0301.md"), "form D")
	}
	for name, to := range map[string]string{"to-file": filepath.Join(secret, "key"), "to-folder": secret, "loop": "loop",
		"inside": "crlf.md", "up": ".."} {
		bad[name] = "link"
		if err := os.Symlink(to, filepath.Join(in, name)); err != nil {
			t.Fatal(err)
		}
	}
	bad["fifo"] = "not a file"
	if err := syscall.Mkfifo(filepath.Join(in, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad["a store"] = "store"
	c.ok("init", filepath.Join(in, "a store"))
	for _, dir := range []string{"nothing/in/it", ".git/objects"} {
		if err := os.MkdirAll(filepath.Join(in, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// A link to the folder is the user's own, as in any command.
	link := filepath.Join(c.dir, "link")
	if err := os.Symlink(in, link); err != nil {
		t.Fatal(err)
	}
	code, m := c.moved(t, "note", "import", link)
	if code != cli.CodeRefused || m.New != len(good) || m.Hidden != 1 || m.Empty != 1 || m.Refused != len(bad) {
		t.Errorf("exit code %d: %+v", code, m)
	}
	for _, p := range m.Problems {
		path := p.Path
		if path == "not\ufffdutf8" {
			path = "not\xffutf8"
		}
		if bad[path] != p.Kind {
			t.Errorf("%q: %s: %s", p.Path, p.Kind, p.Reason)
		}
	}
	out := filepath.Join(c.dir, "out")
	if code, m := c.moved(t, "note", "export", out); code != 0 || m.New != len(good) {
		t.Errorf("exit code %d: %+v", code, m)
	}
	for name, text := range good {
		b, err := os.ReadFile(filepath.Join(out, name))
		info, serr := os.Stat(filepath.Join(out, name))
		if err != nil || serr != nil || string(b) != text || !info.ModTime().Equal(old) {
			t.Errorf("%q: %v %v, %d bytes, %v", name, err, serr, len(b), info)
		}
	}
	if code, m := c.moved(t, "note", "import", out, "--hidden"); code != 0 || m.Same != len(good) || m.New != 0 {
		t.Errorf("exit code %d: %+v", code, m)
	}
	c.ok("verify")
}

// TestNoteExportHostile: links and other things in the target folder.
func TestNoteExportHostile(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	secret := filepath.Join(c.dir, "secret")
	writeFile(t, filepath.Join(secret, "key"), "secret")
	for _, path := range []string{"linked/key", "link", "folder", "file/x", "fine", strings.Repeat("x", 256)} {
		if code, out, _ := c.run("note", "note", "write", path); code != 0 {
			t.Fatal(out)
		}
	}
	out := filepath.Join(c.dir, "out")
	writeFile(t, filepath.Join(out, "file"), "x")
	writeFile(t, filepath.Join(out, "folder", "other"), "x")
	for _, name := range []string{"linked", "link"} {
		if err := os.Symlink(secret, filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	code, m := c.moved(t, "note", "export", out, "--replace")
	if code != cli.CodeRefused || m.New != 1 || m.Refused != 5 {
		t.Errorf("exit code %d: %+v", code, m)
	}
	if b, err := os.ReadFile(filepath.Join(secret, "key")); err != nil || string(b) != "secret" {
		t.Error(string(b), err)
	}
	if list, err := os.ReadDir(secret); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
}

// TestNoteImportChanging: files and folders that change while they are imported. Each note is a content that its file
// had, and nothing outside of the folder is read.
func TestNoteImportChanging(t *testing.T) {
	t.Parallel()
	proofs.ManyProcesses(t, "files are written during the import")
	c := newCLI(t)
	in, secret := filepath.Join(c.dir, "in"), filepath.Join(c.dir, "secret")
	writeFile(t, filepath.Join(secret, "f0"), "secret")
	content := func(i, n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d %d\n", i, n), 2000) }
	const files = 40
	for i := range files {
		writeFile(t, filepath.Join(in, fmt.Sprint("d", i%4), fmt.Sprint("f", i)), string(content(i, 0)))
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond) // so that each file is left alone for 400 ms
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			i := n % files
			name := filepath.Join(in, fmt.Sprint("d", i%4), fmt.Sprint("f", i))
			switch n % 7 {
			case 0: // gone, and there again
				_ = os.Remove(name)
				_ = os.WriteFile(name, content(i, n), 0o600)
			case 1: // a link in the place of a folder
				dir := filepath.Join(in, "d0")
				if os.Rename(dir, dir+".moved") == nil {
					_ = os.Symlink(secret, dir)
					_ = os.Remove(dir)
					_ = os.Rename(dir+".moved", dir)
				}
			default: // in place
				_ = os.WriteFile(name, content(i, n), 0o600)
			}
		}
	})
	for range 3 {
		code, m := c.moved(t, "note", "import", in, "--replace")
		if code != 0 && code != cli.CodeRefused {
			t.Errorf("exit code %d: %+v", code, m)
		}
	}
	close(stop)
	wait.Wait()
	if code, m := c.moved(t, "note", "import", in, "--replace"); code != 0 || m.New+m.Same+m.Replaced != files {
		t.Errorf("exit code %d: %+v", code, m)
	}
	for i := range files {
		path := fmt.Sprintf("d%d/f%d", i%4, i)
		out := c.ok("note", "log", path, "--json")
		var l struct {
			Versions []struct{ Version uint64 }
		}
		if err := json.Unmarshal([]byte(out), &l); err != nil || len(l.Versions) == 0 {
			t.Fatal(path, err, out)
		}
		for _, v := range l.Versions {
			text := c.ok("note", "cat", path, "--version", fmt.Sprint(v.Version))
			line, _, _ := strings.Cut(text, "\n")
			if !strings.HasPrefix(line, fmt.Sprint(i, " ")) || text != strings.Repeat(line+"\n", 2000) {
				t.Errorf("%s, version %d: %d bytes, %.40q", path, v.Version, len(text), text)
			}
		}
	}
}
