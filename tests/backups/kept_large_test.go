package backups

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// A document so large that two do not fit into a commit has its only copy in its file: it can be
// replaced and deleted nevertheless, and its version stays.
func TestLargeLastCopyIsKept(t *testing.T) {
	t.Parallel()
	ctx, top := t.Context(), t.TempDir()
	o := func() *varve.Options { return &varve.Options{NoBackground: true, SegmentSize: 64 << 10} }
	st, err := varve.Open(ctx, filepath.Join(top, "from"), o())
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string { // zstd saves a quarter of it
		b := make([]byte, n*3/4)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	texts := map[string]string{}
	for _, id := range []string{"replaced", "deleted"} {
		texts[id] = text(28 << 10)
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: texts[id]}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Backup(ctx, filepath.Join(top, "backup"), varve.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "store")
	if _, err := varve.Restore(ctx, filepath.Join(top, "backup"), dir, &varve.RestoreOptions{Options: o()}); err != nil {
		t.Fatal(err)
	}
	if st, err = varve.Open(ctx, dir, o()); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Put(ctx, varve.Memory{ID: "replaced", Content: text(28 << 10)}); err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(ctx, "deleted"); err != nil {
		t.Fatal(err)
	}
	for id, want := range texts {
		found := false
		for v, err := range st.History(ctx, id) {
			if err == nil && !v.Deleted && bytes.Contains(v.Document, []byte(want)) {
				found = v.Kept
			}
		}
		if !found {
			t.Errorf("%s: its first version is not kept", id)
		}
	}
	// A file that was adopted as it is, and that no commit could contain.
	huge := `{"id":"huge","content":"` + text(70<<10) + `"}`
	clone := filepath.Join(top, "clone")
	if err := os.MkdirAll(filepath.Join(clone, "memories"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(clone, "config.json"), []byte(`{"varve":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(clone, "memories", "huge.json"), []byte(huge), 0o600); err != nil {
		t.Fatal(err)
	}
	cl, err := varve.Open(ctx, clone, o())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	_, perr := cl.Put(ctx, varve.Memory{ID: "huge", Content: "small"})
	for what, err := range map[string]error{"delete": cl.Delete(ctx, "huge"), "put": perr} {
		if !errors.Is(err, varve.ErrTooLarge) || !strings.Contains(err.Error(), `memctl purge "huge"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := cl.Admin().Purge(ctx, "huge"); err != nil {
		t.Fatal(err)
	}
	if _, err := cl.Get(ctx, "huge"); !errors.Is(err, varve.ErrNotFound) {
		t.Fatal(err)
	}
}
