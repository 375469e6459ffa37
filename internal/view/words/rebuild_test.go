package words_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	varve "github.com/varve-db/varve"
	inside "github.com/varve-db/varve/internal/open"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// files are those of the view.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

// TestRebuildInPieces: a rebuild writes each segment when it is full, while no manifest names it, and the
// answers are those of before. What a process has left that died in between is removed.
func TestRebuildInPieces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	put(t, st, 0, 300)
	flush(t, st)
	want := answers(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, folder)
	manifest := filepath.Join(path, "manifest.json")
	left := filepath.Join(path, "00000000000000aa.seg")
	if err := os.WriteFile(left, []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	var early, late atomic.Int64 // segments that were written before the manifest, and behind it
	o := inside.In(&varve.Options{NoBackground: true}, inside.Environment{System: vfs.System{WordsRows: 50, FS: wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		if op.Kind == wrap.Rename && filepath.Dir(op.To) == path && filepath.Ext(op.To) == ".seg" {
			if _, err := os.Stat(manifest); err == nil {
				late.Add(1)
			} else {
				early.Add(1)
			}
		}
		return call()
	})}})
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	flush(t, st)
	if got := answers(t, st); got != want {
		t.Errorf("in pieces:\n%s\nwant\n%s", got, want)
	}
	if early.Load() != 6 || late.Load() != 0 {
		t.Errorf("%d segments before the manifest, %d behind it", early.Load(), late.Load())
	}
	names := files(t, dir)
	segments := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".seg") {
			segments++
		}
	}
	if segments != 6 || slices.Contains(names, filepath.Base(left)) {
		t.Errorf("%q", names)
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%+v %v", f, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if got := answers(t, open(t, dir)); got != want {
		t.Errorf("opened again:\n%s\nwant\n%s", got, want)
	}
}
