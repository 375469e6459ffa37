package backups

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Row 134 of docs/failures.md: a last copy that cannot be read at the moment is not destroyed.
func TestUnreadLastCopy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, no := range []syscall.Errno{syscall.EMFILE, syscall.EIO, syscall.ENOMEM, syscall.EACCES} {
		c := fixture.ClockAt(time.Unix(1_800_000_000, 0))
		dir, versions := lastCopies(t, "clone", c)
		var fail atomic.Bool
		o := &varve.Options{NoBackground: true, Clock: c.Tick}
		storetest.Of(o).System.FS = fault.New(vfs.OS(), func(op *fault.Op) error {
			if fail.Load() && op.Kind == wrap.Open && strings.HasSuffix(op.Path, "m1.json") {
				return no
			}
			return nil
		})
		st := fixture.Open(t, dir, o)
		fail.Store(true)
		if err := st.Delete(ctx, "m1"); !errors.Is(err, no) {
			t.Errorf("%v: deleted: %v", no, err)
		}
		if _, err := st.Put(ctx, varve.Memory{ID: "m1", Content: "new"}); !errors.Is(err, no) {
			t.Errorf("%v: replaced: %v", no, err)
		}
		fail.Store(false)
		if m, err := st.Get(ctx, "m1"); err != nil || m.Content != "only copy 1" || m.Version != versions["m1"] {
			t.Errorf("%v: %+v, %v", no, m, err)
		}
		if err := st.Delete(ctx, "m1"); err != nil {
			t.Errorf("%v: %v", no, err)
		}
		if m, err := st.Undelete(ctx, "m1"); err != nil || m.Content != "only copy 1" {
			t.Errorf("%v: %+v, %v", no, m, err)
		}
	}
}
