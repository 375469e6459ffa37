package varve

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// copyLive copies a store that somebody has open, as a kill leaves it. The next segment,
// which is made ahead, may get its name meanwhile: then all is copied once more.
func copyLive(t testing.TB, to, from string) {
	t.Helper()
	err := error(fs.ErrNotExist)
	for range 100 {
		if err = os.CopyFS(to, os.DirFS(from)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
