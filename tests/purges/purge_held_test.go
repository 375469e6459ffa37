package purges

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// All files of many memories that one process purges are overwritten, not only as many as fit into its
// pool.
func TestPurgeMany(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := &fixture.Rig{Disk: crash.New()}
	st, err := varve.Open(ctx, "/s", r.Options(1))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s := &secrets{parts: map[string][]byte{}}
	for i := range 200 {
		id := fmt.Sprintf("m%03d", i)
		text := fmt.Sprintf("the secret of %s", id)
		s.ids = append(s.ids, id)
		s.add(id+" at 0", []byte(text))
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	r.Disk.KeepFreed()
	if _, err := st.Admin().Purge(ctx, s.ids...); err != nil {
		t.Fatal(err)
	}
	s.checkFreed(t, r.Disk, true)
	if left := s.traces(t, storetest.Of(r.Options(2)).System.FS, "/s"); len(left) > 0 {
		t.Error(left[0])
	}
}

// What another process flushes between the deletion and the rest of a purge is kept for it.
func TestPurgeBesideFlusher(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := &fixture.Rig{Disk: crash.New()}
	st, err := varve.Open(ctx, "/s", r.Options(1))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	beside, err := varve.Open(ctx, "/s", r.Options(2))
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	for i := range 200 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("m%03d", i), Content: "the secret of all"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	r.Disk.KeepFreed()
	if err := storetest.Inner(st).Engine.Log().Purges().Begin(ctx); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range 200 {
		ids = append(ids, fmt.Sprintf("m%03d", i))
		if err := st.Delete(ctx, ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := beside.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	storetest.Inner(st).Engine.Log().Purges().End()
	if _, err := st.Admin().Purge(ctx, ids...); err != nil {
		t.Fatal(err)
	}
	s := &secrets{ids: ids, parts: map[string][]byte{"x at 0": []byte("the secret of all")}}
	s.checkFreed(t, r.Disk, true)
}

// A hard link by a user keeps its bytes, and purge reports it.
func TestPurgeHardLink(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "journal", Content: "forget this"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	path, link := filepath.Join(dir, "memories", "journal.json"), filepath.Join(filepath.Dir(dir), "snapshot.json")
	want, err := os.ReadFile(path)
	if err == nil {
		err = os.Link(path, link)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := st.Admin().Purge(ctx, "journal")
	var u *vfs.UnwipedError
	if !errors.As(err, &u) || !errors.Is(err, vfs.ErrLinked) || !errors.Is(err, varve.ErrConflict) || len(r.Left) != 1 {
		t.Errorf("%v, left %v", err, r.Left)
	}
	if err != nil && !strings.Contains(err.Error(), "remove the other name to free the data") {
		t.Error(err)
	}
	if b, err := os.ReadFile(link); err != nil || string(b) != string(want) {
		t.Errorf("the snapshot is %q, %v", b, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
