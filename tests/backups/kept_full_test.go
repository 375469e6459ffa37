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
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// If there is no space for a copy, the deletion is refused, the memory stays, and the message names the
// command that removes it without a copy. That command works.
func TestNoRoomForTheLastCopy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := fixture.ClockAt(time.Unix(1_800_000_000, 0))
	dir, _ := lastCopies(t, "clone", c)
	var full atomic.Bool
	o := &varve.Options{NoBackground: true, Clock: c.Tick}
	storetest.Of(o).System.FS = wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		// a copy, and not a deletion alone
		if full.Load() && op.Kind == wrap.Write && strings.HasSuffix(op.Path, ".wal") && op.Size > 400 && op.Size < 4096 {
			return syscall.ENOSPC
		}
		return call()
	})
	st := fixture.Open(t, dir, o)
	full.Store(true)
	err := st.Delete(ctx, "m1")
	if !errors.Is(err, varve.ErrDiskFull) || !strings.Contains(err.Error(), "memctl purge ID") {
		t.Errorf("deleted: %v", err)
	}
	if m, err := st.Get(ctx, "m1"); err != nil || m.Content != "only copy 1" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := st.Admin().Purge(ctx, "m1"); err != nil {
		t.Error(err)
	}
	full.Store(false)
	if err := st.Delete(ctx, "m2"); err != nil {
		t.Error(err)
	}
}
