package purges

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A purge builds the words of the index that it has written, even if a listing of the same process began
// to map the previous index, and is slower than the purge.
func TestPurgeBesideMapping(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var st *varve.Store
	armed, mapped, views, mapping := make(chan struct{}, 1), make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		name := filepath.Base(op.Path)
		switch {
		case op.Kind == wrap.Create && strings.HasPrefix(name, "index."):
			select {
			case <-armed: // the round begins to write the index
				go func() {
					defer close(mapping)
					_ = storetest.Inner(st).Engine.Refresh() // like a listing that met a removed segment of the log
				}()
				<-mapped
			default:
			}
		case op.Kind == wrap.Open && name == "memory_index.json":
			err := call()
			select {
			case mapped <- struct{}{}: // it has the one before, until the views of the purge are written, or wait for it
				select {
				case <-views:
				case <-time.After(200 * time.Millisecond):
				}
			default:
			}
			return err
		case op.Kind == wrap.Rename && strings.Contains(filepath.ToSlash(op.To), "/view_index/words/"):
			select {
			case views <- struct{}{}:
			default:
			}
		}
		return call()
	})
	st = fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: slow}}))
	for id, content := range map[string]string{"kept": "calm", "secret": "okapi"} {
		if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	armed <- struct{}{}
	if _, err := st.Admin().Purge(t.Context(), "secret"); err != nil {
		t.Error(err)
	}
	<-mapping
	files, err := filepath.Glob(filepath.Join(dir, "view_index", "words", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err != nil || strings.Contains(string(b), "okapi") {
			t.Errorf("%s has what was purged, %v", filepath.Base(file), err)
		}
	}
}
