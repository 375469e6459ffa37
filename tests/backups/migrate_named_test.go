package backups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// A migrate.json that came with a store may name any folder. The content of that folder is not quoted,
// and no message advises to remove it.
func TestMigrationNamesAnotherFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, other := filepath.Join(top, "store"), filepath.Join(top, "other")
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	id := "0191a8de-0000-7000-8000-000000000001"
	note := fmt.Appendf(nil,
		`{"varve_migration":1,"id":%q,"store":%q,"from":%q,"state":"ready","began":"2026-01-01T00:00:00Z"}`, id, id, other)
	if err := errors.Join(os.Mkdir(other, 0o700), os.WriteFile(filepath.Join(dir, "migrate.json"), note, 0o600),
		os.WriteFile(filepath.Join(other, "moved.json"), []byte("{secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err = varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	if !errors.Is(err, varve.ErrCorrupt) {
		t.Fatalf("opened: %v", err)
	}
	t.Log(err)
	for _, bad := range []string{"secret", "'s'", "remove it", filepath.Join(other, "moved.json")} {
		if strings.Contains(err.Error(), bad) {
			t.Errorf("%q is in %v", bad, err)
		}
	}
	if want := "remove " + filepath.Join(dir, "migrate.json"); !strings.Contains(err.Error(), want) {
		t.Errorf("%q is not in %v", want, err)
	}
}
