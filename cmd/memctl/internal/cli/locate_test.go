package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
)

// A store without its config.json is found from inside it as before; a folder that has a
// log's lock and nothing else is none.
func TestLocateWithoutConfig(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "storage")
	st, err := varve.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, configName)); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(root, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := nearest(sub); err != nil || got != dir {
		t.Errorf("found %q, %v; want %s", got, err, dir)
	}
	if err := os.WriteFile(filepath.Join(dir, "checkpoint"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := nearest(sub); err == nil && got == dir {
		t.Errorf("a folder without a checkpoint was taken for a store")
	}
}
