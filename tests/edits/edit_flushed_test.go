package edits

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// FAILURES 184: flushes of an open store do not hide that a file was deleted meanwhile: the next open
// still sees that the folder was changed, and restores the file.
func TestDeletedBesideFlushes(t *testing.T) {
	e := fixture.NewEditing(t, 3, &varve.Options{})
	if err := os.WriteFile(filepath.Join(e.Dir, "config.json"), []byte(`{"varve": 1, "adopt_deletions": false}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(e.Dir, "memories", "k1.json")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := e.St.Put(t.Context(), varve.Memory{Content: "flushed later"}); err != nil {
			t.Fatal(err)
		}
		if err := e.St.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Inner(e.St).Engine.Settings().Reread()
	if err := e.St.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second open finds nothing to do
		st := fixture.Open(t, e.Dir, &varve.Options{NoBackground: true})
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
	c, err := os.ReadFile(filepath.Join(e.Dir, "checkpoint"))
	if err != nil || len(c) == 0 {
		t.Fatal(err)
	}
}
