package varve

import (
	"os"
	"path/filepath"
	"testing"
)

// FAILURES 184: flushes of an open store do not hide that a file was deleted meanwhile: the next open still
// sees that the folder was changed, and restores it.
func TestDeletedBesideFlushes(t *testing.T) {
	e := edited(t, 3, &Options{})
	if err := os.WriteFile(filepath.Join(e.dir, "config.json"), []byte(`{"varve": 1, "adopt_deletions": false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(e.dir, "memories", "k1.json")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := e.st.Put(t.Context(), Memory{Content: "flushed later"}); err != nil {
			t.Fatal(err)
		}
		if err := e.st.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.st.inner.Engine.Settings().Reread()
	if err := e.st.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second open finds nothing to do
		st := openTest(t, e.dir, &Options{NoBackground: true})
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
	c, err := os.ReadFile(filepath.Join(e.dir, "checkpoint"))
	if err != nil || len(c) == 0 {
		t.Fatal(err)
	}
}
