package offsite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// TestSnapshotBesideEdits: what is done to the files by hand while a snapshot is made, and is not adopted, does not
// travel. If the file was the only copy of a memory, no snapshot is made until it is repaired, and the one before still
// has the memory: every moment can be cloned, with what the store had.
func TestSnapshotBesideEdits(t *testing.T) {
	for name, edit := range map[string]func(file string) error{
		"removed": os.Remove,
		"damaged": func(file string) error { return os.WriteFile(file, []byte("\x00 not JSON"), 0o600) },
		"emptied": func(file string) error { return os.Truncate(file, 0) },
		"changed": func(file string) error {
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return os.WriteFile(file, []byte(strings.Replace(string(b), "one", "by hand", 1)), 0o600)
		},
		"newer format": func(file string) error { return os.WriteFile(file, []byte(`{"id": "a", "content": 5}`), 0o600) },
	} {
		for _, released := range []bool{false, true} {
			t.Run(strings.ReplaceAll(name, " ", "-")+map[bool]string{true: "-released"}[released], func(t *testing.T) {
				x, ctx := newOutsider(t), t.Context()
				now := x.timed()
				x.put("a", "one")
				x.put("b", "two")
				x.check(x.st.Flush(ctx))
				x.check(x.st.Close()) // and nothing is in memory
				store := filepath.Join(x.dir, "store")
				if released { // the files are the only copies: a store that was made of them
					x.check(os.Rename(store, store+".old"))
					x.check(os.Mkdir(store, 0o700))
					x.check(os.CopyFS(filepath.Join(store, "memories"), os.DirFS(filepath.Join(store+".old", "memories"))))
					x.open()
					x.check(x.st.Flush(ctx))
					x.check(x.st.Close())
				}
				x.open()
				x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
				x.check(edit(filepath.Join(store, "memories", "a.json")))
				x.put("c", "three")
				*now = now.Add(25 * time.Hour) // another snapshot is due
				err := x.st.Admin().Offsite().Send(ctx, x.remote)
				if damaged := released && name != "changed"; damaged != errors.Is(err, varve.ErrCorrupt) || !damaged && err != nil {
					t.Fatalf("a snapshot of a store that has lost a memory: %v", err)
				}
				own, oerr := x.st.Get(ctx, "a")
				fork := filepath.Join(x.dir, "fork")
				_, err = varve.Clone(ctx, x.remote, fork, &varve.CloneOptions{Fork: true, Options: x.o})
				x.check(err)
				st, err := varve.Open(ctx, fork, x.o)
				x.check(err)
				defer st.Close()
				for id, want := range map[string]string{"a": "one", "b": "two", "c": "three"} {
					switch {
					case id == "a" && oerr == nil:
						want = own.Content
					case id == "a" && errors.Is(oerr, varve.ErrNotFound):
						continue // the store has adopted the removal
					}
					if m, err := st.Get(ctx, id); err != nil || m.Content != want {
						t.Errorf("%s is %q, not %q: %v", id, m.Content, want, err)
					}
				}
			})
		}
	}
}
