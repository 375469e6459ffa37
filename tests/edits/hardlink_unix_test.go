//go:build unix

package edits

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A hard link in the place of a file that the log writes into is not written through: an archive may
// contain one that leads to any file of its user.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, name := range []string{"checkpoint", "wal/shared", "wal/owner", "wal/00000001.wal", "wal/flush.lock",
		"wal/attach.lock", "memory_index.json", "memories/a.json", "config.json"} {
		for _, foreign := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " foreign"}[foreign], func(t *testing.T) {
				dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
				st := fixture.Open(t, dir, fixture.SmallLog)
				fixture.Put(t, st, "a")
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
				at := filepath.Join(dir, filepath.FromSlash(name))
				text := []byte("what somebody else has\n")
				if !foreign {
					var err error
					if text, err = os.ReadFile(at); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(out, text, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(at); err != nil {
					t.Fatal(err)
				}
				if err := os.Link(out, at); err != nil {
					t.Skip(err)
				}
				if st, err := varve.Open(ctx, dir, fixture.SmallLog); err == nil {
					for range 3 {
						_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "again"})
						_, _ = st.Put(ctx, varve.Memory{ID: "b", Content: "new"})
					}
					if !foreign && err != nil {
						t.Errorf("put: %v", err)
					}
					_ = st.Flush(ctx)
					if cerr := st.Close(); cerr != nil && !foreign {
						t.Error(cerr)
					}
				} else if !foreign {
					t.Error(err)
				}
				got, err := os.ReadFile(out)
				if err != nil || string(got) != string(text) {
					t.Errorf("the other name has %d bytes by now, had %d (%v)", len(got), len(text), err)
				}
			})
		}
	}
}
