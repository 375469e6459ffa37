package trace

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

var update = flag.Bool("update", false, "write the golden files anew")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The same calls give the same lines on the system and on the simulated disk.
func TestGolden(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for what, c := range map[string]struct {
		fs   vfs.FS
		root string
	}{"os": {vfs.OS(), dir}, "crash": {crash.New().Process("x"), "/store"}} {
		var got strings.Builder
		fsys := New(c.fs, c.root, nil, func(line string) { got.WriteString(line + "\n") })
		in := func(name string) string { return filepath.Join(c.root, name) }

		must(t, fsys.Mkdir(c.root, 0o700))
		must(t, vfs.WriteDurable(fsys, in("tmp"), in("name"), []byte("hello"), 0o600))
		l, err := fsys.OpenLock(in("lock"), 0o600)
		must(t, err)
		must(t, l.Lock(context.Background(), vfs.ModeExclusive))
		s, err := fsys.OpenShared(in("shared"), true, 0o600)
		must(t, err)
		s.Store(3, 17)
		s.CompareAndSwap(3, 17, 18)
		s.Load(3)
		must(t, s.Close())
		must(t, l.Unlock())
		l.TryLock(vfs.ModeShared)
		must(t, l.Close())
		fsys.RenameNew(in("name"), in("lock"))
		fsys.OpenFile(in("none"), os.O_RDONLY, 0)
		f, err := fsys.OpenFile(in("name"), os.O_RDWR, 0)
		must(t, err)
		f.ReadAt(make([]byte, 9), 1)
		must(t, f.Truncate(2))
		must(t, f.Datasync())
		must(t, f.Close())

		golden := filepath.Join("testdata", "trace.golden")
		if *update {
			must(t, os.MkdirAll("testdata", 0o755))
			must(t, os.WriteFile(golden, []byte(got.String()), 0o644))
		}
		want, err := os.ReadFile(golden)
		must(t, err)
		if got.String() != string(want) {
			t.Errorf("%s (go test ./internal/vfs/trace -update writes it anew):\n%s", what, got.String())
		}
	}
}

func TestChanging(t *testing.T) {
	var lines []string
	fsys := New(crash.New().Process("x"), "/", Changing, func(line string) { lines = append(lines, line) })
	fsys.Stat("/")
	fsys.ReadDir("/")
	must(t, fsys.Mkdir("/a", 0o700))
	must(t, fsys.SyncDir("/"))
	if got := strings.Join(lines, "; "); got != "mkdir a; syncdir ." {
		t.Fatal(got)
	}
}
