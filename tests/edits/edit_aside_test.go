package edits

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// The second of two saves in a row, which a round sets aside, is adopted even if that round fails, or
// rebuilds the index.
func TestEditedAgainAmidFailure(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, what := range []string{"flush", "failed", "rebuild"} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			fail := false
			fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
				if fail && (op.Kind == wrap.SyncDir || op.Kind == wrap.Barrier) && strings.Contains(op.Path, "memories") {
					fail = false
					return syscall.EIO
				}
				return nil
			})
			st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
				storetest.Environment{System: vfs.System{FS: fsys, Inline: true}}))
			lead, err := storetest.Inner(st).Engine.Log().Processes().Lead(ctx)
			fixture.Must(t, err)
			defer func() { fixture.Must(t, lead.Release()) }()
			_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "first"})
			fixture.Must(t, err)
			fixture.Must(t, st.Flush(ctx))
			_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "second"})
			fixture.Must(t, err)
			b, err := st.Admin().GetRaw(ctx, "a")
			fixture.Must(t, err)
			fixture.Must(t, os.WriteFile(filepath.Join(dir, "memories", "a.json"),
				[]byte(strings.Replace(string(b), "second", "third", 1)), 0o600))
			switch what {
			case "failed":
				fail = true
				if err := st.Flush(ctx); !errors.Is(err, syscall.EIO) {
					t.Fatal(err)
				}
			case "rebuild":
				fixture.Must(t, st.Admin().RebuildIndex(ctx))
			}
			if what != "rebuild" {
				fixture.Must(t, st.Flush(ctx))
			}
			if m, err := st.Get(ctx, "a"); err != nil || m.Content != "third" {
				t.Errorf("%q, %v", m.Content, err)
			}
		})
	}
}
