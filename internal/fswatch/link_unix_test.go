//go:build unix

package fswatch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// A folder that has become a link is not watched: the system would report events of the link's target.
func TestLinkIsNotWatched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "memories")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	src, err := notify(map[string]string{link: "memories"})
	if err == nil {
		src.Close()
	}
	if vfs.EnterError(err) == nil {
		t.Fatalf("watching a link: %v", err)
	}
}
