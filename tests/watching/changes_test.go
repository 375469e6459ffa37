package watching

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// Changes yields what others have committed, each commit once, and ends.
func TestChanges(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	writer, reader := fixture.Open(t, dir, nil), fixture.Open(t, dir, nil)
	at := reader.Admin().Stats().Durable
	for round := range 5 {
		for i := range 3 * round { // none in the first
			if _, err := writer.Put(ctx, varve.Memory{ID: fmt.Sprint(round, "-", i), Content: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		if round == 3 {
			if err := writer.Flush(ctx); err != nil { // the log's own entries are no changes
				t.Fatal(err)
			}
		}
		n := 0
		for c, err := range reader.Admin().Changes(ctx, at) {
			if err != nil || c.ID != fmt.Sprint(round, "-", n) || c.Memory.Content != "x" {
				t.Fatalf("round %d, change %d: %+v, %v", round, n, c, err)
			}
			at = c.Next
			n++
		}
		if n != 3*round {
			t.Fatalf("round %d: %d changes", round, n)
		}
	}
	for c, err := range reader.Admin().Changes(ctx, at) {
		t.Fatalf("nothing is new: %+v, %v", c, err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range reader.Admin().Changes(ctx, at) {
		if !errors.Is(err, varve.ErrClosed) {
			t.Fatal(err)
		}
	}
}
