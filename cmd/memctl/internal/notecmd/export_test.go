package notecmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// TestExportBesideAnotherProgram: a file that another program creates while an export writes its note is kept.
func TestExportBesideAnotherProgram(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	st, err := varve.Open(ctx, filepath.Join(dir, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Notes().Write(ctx, "a.md", []byte("of the store")); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "to")
	name := filepath.Join(to, "a.md")
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	files := wrap.New(vfs.Below(vfs.OS(), to), func(op *wrap.Op, call func() error) error {
		err := call()
		if op.Kind == wrap.Stat && op.Path == name {
			if err := os.WriteFile(name, []byte("of the other program"), 0o600); err != nil {
				t.Error(err)
			}
		}
		return err
	})
	report := newMoved("notes", to)
	tr := newTransfer(ctx, report, func(int) {})
	w := &writing{fs: files, dir: to, folded: map[string]*exported{}, made: map[string]bool{}}
	for e, err := range st.Notes().List(ctx, "", 0) {
		if err == nil {
			err = tr.exportNote(ctx, st, w, &e, e.Path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "of the other program" {
		t.Errorf("%q, %v", text, err)
	}
	if report.Kept != 1 || report.New != 0 {
		t.Errorf("%+v", report)
	}
	list, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), ".varve") {
			t.Errorf("%s is left", e.Name())
		}
	}
}
