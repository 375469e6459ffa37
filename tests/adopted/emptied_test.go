package adopted

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// TestEmptiedHoldsUpNone: while a file that was emptied a moment ago is waited for, the edits of others are adopted.
func TestEmptiedHoldsUpNone(t *testing.T) {
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), dir, &varve.Options{WatchFiles: true})
	must(t, err)
	defer st.Close()
	for _, path := range []string{"a.md", "b.md"} {
		_, err = st.Notes().Write(t.Context(), path, []byte("first"))
		must(t, err)
	}
	must(t, st.Flush(t.Context()))
	for i := range 2 {
		name := filepath.Join(dir, "notes", "a.md")
		must(t, os.WriteFile(name, nil, 0o600))
		time.Sleep(600 * time.Millisecond) // until it is looked at: twice what the watcher lets a file rest
		must(t, os.WriteFile(filepath.Join(dir, "notes", "b.md"), []byte{byte('0' + i)}, 0o600))
		has := func(path string) (size int64, hash string) {
			for e, err := range st.Notes().List(t.Context(), "", 0) {
				if must(t, err); e.Path == path {
					return e.Size, e.ContentHash
				}
			}
			return -1, ""
		}
		want := hashOf([]byte{byte('0' + i)})
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if _, hash := has("b.md"); hash == want {
				break
			}
			if size, _ := has("a.md"); size == 0 || time.Now().After(end) {
				t.Fatal("the other file was adopted first")
			}
		}
		must(t, os.WriteFile(name, fmt.Appendf(nil, "again%d", i), 0o600))
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if size, _ := has("a.md"); size == 6 {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the file is not adopted")
			}
		}
	}
}
