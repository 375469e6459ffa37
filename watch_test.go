package varve

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// What one process commits another one sees, in order and once, also what is
// committed while it watches.
func TestWatch(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	writer := openTest(t, dir, nil)
	reader := openTest(t, dir, nil)
	const n = 500
	from := reader.Stats().Durable
	go func() {
		for i := range n {
			if _, err := writer.Put(ctx, Memory{ID: fmt.Sprint("k", i), Content: fmt.Sprint("c", i)}); err != nil {
				t.Error(err)
			}
		}
		if err := writer.Delete(ctx, "k0"); err != nil {
			t.Error(err)
		}
	}()
	i := 0
	last := from
	for c, err := range reader.Watch(ctx, from) {
		if err != nil {
			t.Fatal(err)
		}
		if c.LSN < last {
			t.Fatalf("change at %d after %d", c.LSN, last)
		}
		last = c.Next
		if i == n {
			if !c.Deleted || c.ID != "k0" {
				t.Fatalf("last change: %+v", c)
			}
			break
		}
		if c.ID != fmt.Sprint("k", i) || c.Memory.Content != fmt.Sprint("c", i) || c.Memory.Version != c.LSN {
			t.Fatalf("change %d: %+v", i, c)
		}
		i++
	}
	// From where it was left nothing comes twice.
	if _, err := writer.Put(ctx, Memory{ID: "next", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	for c, err := range reader.Watch(ctx, last) {
		if err != nil || c.ID != "next" {
			t.Fatalf("resumed: %+v, %v", c, err)
		}
		break
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range reader.Watch(ended, reader.Stats().Durable) {
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// One who lags behind the log's release is told how far it still reaches.
func TestWatchTruncated(t *testing.T) {
	ctx := context.Background()
	st := openTest(t, t.TempDir(), &Options{SegmentSize: 64 << 10, NoBackground: true})
	from := st.Stats().Durable
	for i := range 300 {
		if _, err := st.Put(ctx, Memory{ID: fmt.Sprint("k", i), Content: fmt.Sprintf("%01000d", i)}); err != nil {
			t.Fatal(err)
		}
		if i%50 == 49 {
			if err := st.Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, err := range st.Watch(ctx, from) {
		var gone *TruncatedError
		if !errors.As(err, &gone) || !errors.Is(err, ErrTruncated) || gone.Oldest <= from {
			t.Fatalf("got %v", err)
		}
		break
	}
}
