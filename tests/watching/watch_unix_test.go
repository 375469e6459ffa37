//go:build unix

package watching

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A watcher of a store whose folder is renamed, removed or replaced gets an error, instead of waiting
// forever.
func TestWatchGone(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "s")
		st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
		ended := make(chan error, 1)
		go func() {
			var last error
			for _, err := range st.Watch(t.Context(), st.Admin().Stats().Durable) {
				last = err
			}
			ended <- last
		}()
		aside := dir + ".aside"
		if err := os.Rename(dir, aside); err != nil {
			t.Fatal(err)
		}
		if replaced {
			other, err := varve.Open(t.Context(), dir, nil)
			if err == nil {
				err = other.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		select {
		case err := <-ended:
			if !errors.Is(err, varve.ErrReplaced) {
				t.Errorf("replaced %t: %v", replaced, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("replaced %t: it waits", replaced)
		}
		if err := st.Close(); !errors.Is(err, varve.ErrReplaced) {
			t.Errorf("replaced %t: Close: %v", replaced, err)
		}
	}
}
