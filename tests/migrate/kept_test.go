package migrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
)

// A memory rots in the store after it was copied: its copy is the only intact one, and stays.
func TestMigrateKeepsTheOnlyGoodCopy(t *testing.T) {
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	put := func() {
		st, err := varve.Open(ctx, dir, nil)
		if err == nil {
			if _, err = st.Put(ctx, varve.Memory{ID: "k", Content: strings.Repeat("content ", 20)}); err == nil {
				err = st.Flush(ctx)
			}
			err = errors.Join(err, st.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put()
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil { // with what heals it
		t.Fatal(err)
	}
	st, err := varve.Open(ctx, dir, nil)
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := varve.Migrate(ctx, dir, to, nil); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(to, "memories", "k.json"))
	if err != nil {
		t.Fatal(err)
	}
	storetest.Rewrite(t, filepath.Join(dir, "memories", "k.json"), func(b []byte) []byte {
		b[len(b)/2] ^= 4
		return b
	})
	if r, err := varve.Migrate(ctx, dir, to, nil); err != nil || len(r.Damaged) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "memories", "k.json")); err != nil || string(b) != string(good) {
		t.Errorf("the only good copy: %q, %v", b, err)
	}
}
