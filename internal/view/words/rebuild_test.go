package words_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
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
	var calls []string // what the rebuild reads and writes, in this order
	late := 0          // segments that were written behind the manifest
	o := storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{WordsRows: 50, Inline: true,
			FS: wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
				switch {
				case op.Kind == wrap.Open && filepath.Base(filepath.Dir(op.Path)) == "memories":
					calls = append(calls, "read")
				case op.Kind == wrap.Map && filepath.Ext(op.Path) == ".seg":
					calls = append(calls, "map")
				case op.Kind == wrap.Rename && filepath.Dir(op.To) == path && filepath.Ext(op.To) == ".seg":
					calls = append(calls, "write")
					if _, err := os.Stat(manifest); err == nil {
						late++
					}
				}
				return call()
			})}})
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	flush(t, st)
	// Of 300 documents 256 are read before the first segment is written, the others behind five of them. Each
	// segment that was written is read from its file from there on.
	counts := map[string]int{}
	for i, c := range calls {
		counts[c]++
		switch {
		case c == "write" && counts[c] < 6 && calls[i+1] != "map":
			t.Errorf("segment %d is not mapped when it is written: %q", counts[c], calls[i:])
		case c == "write" && counts[c] == 5 && counts["read"] > 256, c == "read" && counts[c] == 257 && counts["write"] != 5:
			t.Errorf("%d segments are written when %d documents are read", counts["write"], counts["read"])
		}
	}
	if counts["read"] != 300 || counts["write"] != 6 || late != 0 {
		t.Errorf("%v, %d segments behind the manifest", counts, late)
	}
	if got := answers(t, st); got != want {
		t.Errorf("in pieces:\n%s\nwant\n%s", got, want)
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
