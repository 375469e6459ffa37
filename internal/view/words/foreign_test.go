package words_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A search removes no file, also one that has failed before: what no manifest names may be what another
// process is just writing.
func TestSearchRemovesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	put(t, st, 0, 100)
	flush(t, st)
	view, aside := filepath.Join(dir, folder), filepath.Join(dir, "aside")
	if err := errors.Join(st.Close(), os.Rename(view, aside)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	o := storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
			if strings.Contains(op.Path, "memories/") {
				stop()
			}
			return call()
		})}})
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if hits, err := st.Search(ctx, varve.Query{Text: "number7"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("%d found, %v", len(hits), err)
	}
	written := filepath.Join(aside, "00000000000000aa.seg")
	if err := errors.Join(os.WriteFile(written, []byte("half"), 0o600), os.Rename(aside, view)); err != nil {
		t.Fatal(err)
	}
	if hits, err := st.Search(t.Context(), varve.Query{Text: "number7"}); err != nil || len(hits) == 0 {
		t.Error(hits, err)
	}
	if _, err := os.Stat(filepath.Join(view, filepath.Base(written))); err != nil {
		t.Error(err)
	}
}
