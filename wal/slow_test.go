package wal

import (
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A failing disk is slow first: a slow sync is reported.
func TestSlowSyncIsTold(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	takes := time.Duration(0)
	var slow []time.Duration
	l, _ := open(t, t.TempDir(), func(o *Options) {
		o.Inline = true
		o.Clock = func() time.Time { return now }
		o.FS = wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
			if op.Kind == wrap.Datasync {
				now = now.Add(takes)
			}
			return call()
		})
		o.Event = func(e Event) {
			if e.Kind == EventSlowSync {
				slow = append(slow, e.Took)
			}
		}
	})
	defer l.Close()
	for _, d := range []time.Duration{time.Millisecond, time.Second, 3 * time.Second} {
		takes = d
		mustAppend(t, l, put("a", "v"))
	}
	if want := []time.Duration{3 * time.Second}; !slices.Equal(slow, want) {
		t.Errorf("told of syncs that took %v, want %v", slow, want)
	}
}
