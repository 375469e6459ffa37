package backups

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// A memory that does not exist is put, while another process puts and deletes one of that name: it is
// absent before and after, but not by the same deletion. Each version names the one before it, and the
// file of the other's version, which was flushed in between, is not treated as an edit by hand. Found by
// TestLinearizable.
func TestRegressChainOverDeletion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	other := fixture.Open(t, dir, &varve.Options{NoBackground: true, LockWait: 50 * time.Millisecond})
	between, calls := func() {}, 0
	clock := func() time.Time {
		if calls--; calls == 0 {
			between()
		}
		return time.Now()
	}
	// nothing else calls the clock
	st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true, Clock: clock},
		storetest.Environment{System: vfs.System{Inline: true}}))
	met := 0
	// The clock is called before, between and after reading and writing.
	for call := 1; call < 12; call++ {
		id := fmt.Sprint("m", call)
		came := false
		between = func() {
			for range 2 { // the second deletion is not the one that was known
				if _, err := other.Put(ctx, varve.Memory{ID: id, Content: "the other's"}); err != nil {
					if !errors.Is(err, varve.ErrLocked) {
						t.Error(err)
					}
					return // asked under a lock
				}
				if err := other.Flush(ctx); err != nil {
					t.Error(err)
				}
				if err := other.Delete(ctx, id); err != nil {
					t.Error(err)
				}
				came = true
			}
		}
		calls = call
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "ours"}); err != nil {
			t.Fatal(err)
		}
		calls = 0
		if came {
			met++
		}
		var before uint64
		for v, err := range st.History(ctx, id) {
			if err != nil {
				t.Fatal(err)
			}
			if v.Previous != before {
				t.Errorf("call %d: version %d names %d as the one before it, which is %d", call, v.LSN, v.Previous, before)
			}
			before = v.LSN
		}
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if met < 3 {
		t.Errorf("the other came between only %d times", met)
	}
	if aside, _ := filepath.Glob(filepath.Join(dir, "quarantine", "*")); len(aside) > 0 {
		t.Errorf("set aside, though nobody edited anything: %v", aside)
	}
}
