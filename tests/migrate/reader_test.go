package migrate

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// A read-only handle does not prevent moving the store, but does not continue to read outdated data.
func TestMigrateUnderAReader(t *testing.T) {
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	movable(t, dir)
	var later atomic.Int64
	st, err := varve.Open(ctx, dir, &varve.Options{ReadOnly: true, Clock: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := st.Get(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true}); err != nil {
		t.Fatal(err)
	}
	later.Store(int64(time.Second))
	var gone *varve.MovedError
	if _, err := st.Get(ctx, "a"); !errors.As(err, &gone) || gone.To != to {
		t.Errorf("get: %v", err)
	}
	if _, err := st.Count(ctx); !errors.Is(err, varve.ErrMoved) {
		t.Errorf("count: %v", err)
	}
	for _, err := range st.Memories(ctx) {
		if !errors.Is(err, varve.ErrMoved) {
			t.Errorf("all: %v", err)
		}
		break
	}
	for _, err := range st.Watch(ctx, 0) {
		if !errors.Is(err, varve.ErrMoved) {
			t.Errorf("watch: %v", err)
		}
		break
	}
	if _, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{RemoveSource: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Get(ctx, "a"); !errors.Is(err, varve.ErrMoved) {
		t.Errorf("after that: %v", err)
	}
}
