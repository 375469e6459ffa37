package dir_test

import (
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/dir"
	"github.com/varve-db/varve/remote/remotetest"
)

func TestRemote(t *testing.T) {
	t.Parallel()
	remotetest.Run(t, func(t *testing.T) func() remote.Remote {
		folder := filepath.Join(t.TempDir(), "a", "copy")
		if _, err := dir.Create(t.Context(), folder, nil); err != nil {
			t.Fatal(err)
		}
		return func() remote.Remote {
			r, err := dir.Open(t.Context(), folder, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
	})
}
