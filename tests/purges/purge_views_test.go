package purges

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A purge that cannot examine, open or remove a file of the words ends with an error, and rounds until
// it is repeated leave that file unchanged: when it is replaced it is overwritten.
func TestPurgeOfUnseenWords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for what, fails := range map[string]func(op *wrap.Op) bool{
		"open":    func(op *wrap.Op) bool { return op.Kind == wrap.Open && filepath.Ext(op.Path) == ".seg" },
		"readdir": func(op *wrap.Op) bool { return op.Kind == wrap.ReadDir },
		"stat":    func(op *wrap.Op) bool { return op.Kind == wrap.Stat && filepath.Ext(op.Path) == ".seg" },
		"remove":  func(op *wrap.Op) bool { return op.Kind == wrap.Remove },
	} {
		for _, between := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, a flush between %v", what, between), func(t *testing.T) {
				t.Parallel()
				s := toldSecrets("secret")
				s.add("its word at 0", []byte("xylophonequark"))
				r, on := &fixture.Rig{Disk: crash.New()}, new(atomic.Bool)
				o := r.Options(1)
				e := *storetest.Of(o)
				e.System.FS = wrap.New(e.System.FS, func(op *wrap.Op, call func() error) error {
					if on.Load() && strings.HasPrefix(op.Path, "/s/view_index/words") && fails(op) {
						return syscall.EIO
					}
					return call()
				})
				st, err := varve.Open(ctx, "/s",
					storetest.In(&varve.Options{Clock: o.Clock, SegmentSize: o.SegmentSize, NoBackground: true, CacheBytes: -1}, e))
				if err != nil {
					t.Fatal(err)
				}
				beside, err := varve.Open(ctx, "/s",
					storetest.In(&varve.Options{Clock: o.Clock, SegmentSize: o.SegmentSize, NoBackground: true, CacheBytes: -1}, e))
				if err != nil {
					t.Fatal(err)
				}
				put := func(id, content string) {
					t.Helper()
					if _, err := st.Put(ctx, varve.Memory{ID: id, Content: content}); err != nil {
						t.Fatal(err)
					}
				}
				flush := func(st *varve.Store) {
					t.Helper()
					if err := st.Flush(ctx); err != nil {
						t.Fatal(err)
					}
				}
				for i := range 200 {
					put(fmt.Sprint("m", i), fmt.Sprint("boat number ", i))
				}
				put("secret", told+" xylophonequark")
				flush(st)
				r.Disk.KeepFreed()
				on.Store(true)
				if _, err := st.Admin().Purge(ctx, "secret"); err == nil {
					t.Error("it is called done")
				}
				if between {
					put("other", "y")
					flush(st)
					for i := range 30 {
						put(fmt.Sprint("o", i), strings.Repeat(fmt.Sprint("y", i, " "), 2000))
					}
					flush(beside)
					flush(st)
				}
				on.Store(false)
				if _, err := st.Admin().Purge(ctx, "secret"); err != nil && !errors.Is(err, varve.ErrNotFound) {
					t.Error(err)
				}
				if hits, err := st.Search(ctx, varve.Query{Text: "boat"}); err != nil || len(hits) == 0 {
					t.Error(hits, err)
				}
				put("later", "a sail")
				flush(beside)
				if h := beside.Health(ctx); len(h.Problems) > 0 {
					t.Errorf("the other process: %v", h.Problems)
				}
				if err := errors.Join(beside.Close(), st.Close()); err != nil {
					t.Error(err)
				}
				s.checkFreed(t, r.Disk, true)
				if left := s.traces(t, e.System.FS, "/s"); len(left) > 0 {
					t.Error(left[0])
				}
			})
		}
	}
}
