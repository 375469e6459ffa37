package edits

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A memory is saved by hand several times in a row, without changing updated_at: each save is adopted,
// none is treated as the edit of an older version. Found by TestStorm.
func TestRegressEditedAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "first"}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "memories", "a.json")
	was := "first"
	for i, flush := range []bool{true, false, true, true, false, false} {
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		state := string(rune('A'+i)) + " by hand"
		if err := os.WriteFile(name, bytes.Replace(b, []byte(was), []byte(state), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		was = state
		if m, err := st.Get(ctx, "a"); err != nil || m.Content != state {
			t.Errorf("edit %d: %q, %v", i, m.Content, err)
		}
		if flush {
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if aside, _ := filepath.Glob(filepath.Join(dir, "quarantine", "*")); len(aside) > 0 {
		t.Errorf("set aside: %v", aside)
	}
}
