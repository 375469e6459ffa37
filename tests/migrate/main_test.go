package migrate

import (
	"context"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
)

// The tests use no other process, but have a repair key of their own, and no goroutine may be left.
func TestMain(m *testing.M) { storetest.Main(m, nil) }

// texts returns the contents of a store's memories.
func texts(t testing.TB, dir string) map[string]string {
	t.Helper()
	st, err := varve.Open(context.Background(), dir, &varve.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all := map[string]string{}
	for m, err := range st.Memories(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		all[m.ID] = m.Content
	}
	return all
}
