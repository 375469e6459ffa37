//go:build linux || darwin

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file that a user names is opened if it is regular, also through a link, and no open waits.
func TestOpenGiven(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(path("file"), []byte("text"), 0o600))
	must(t, os.Symlink("file", path("link")))
	must(t, os.Symlink("fifo", path("link-to-fifo")))
	must(t, os.Mkdir(path("folder"), 0o700))
	must(t, unix.Mkfifo(path("fifo"), 0o600))
	t.Chdir(dir) // the path of a socket is short
	l, err := net.Listen("unix", "socket")
	must(t, err)
	defer l.Close()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()

	opens := map[string]func(string) (*os.File, error){
		"OpenGiven": func(name string) (*os.File, error) { return OpenGiven(path(name)) },
		"OpenIn":    func(name string) (*os.File, error) { return OpenIn(root, name) },
	}
	for how, open := range opens {
		for _, name := range []string{"file", "link"} {
			f, err := open(name)
			must(t, err)
			text, err := io.ReadAll(f)
			if err != nil || string(text) != "text" {
				t.Errorf("%s %s: %q, %v", how, name, text, err)
			}
			must(t, f.Close())
		}
		for _, name := range []string{"folder", "fifo", "link-to-fifo", "socket"} {
			done := make(chan error, 1)
			go func() {
				f, err := open(name)
				if err == nil {
					f.Close()
				}
				done <- err
			}()
			select {
			case err := <-done:
				if !errors.Is(err, ErrNotRegular) {
					t.Errorf("%s %s: %v", how, name, err)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s %s: it waits", how, name)
			}
		}
		if _, err := open("none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: missing: %v", how, err)
		}
	}
	if _, err := OpenIn(root, "../x"); err == nil {
		t.Error("a name led out of the root")
	}
}
