package varve

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/internal/open"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
)

// A memory that cannot be read keeps the others from being found in no kind of
// search, and through no filter; and the error names it.
func TestSearchBesideTheUnreadable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := openTest(t, dir, &Options{NoBackground: true})
	for _, id := range []string{"a", "b", "c"} {
		if _, err := st.Put(ctx, Memory{ID: id, Content: "word", Embedding: []float32{1, 2}, Metadata: map[string]any{"category": "k", "session_id": "s"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if strings.HasSuffix(op.Path, "memories/a.json") {
			return syscall.EIO
		}
		return nil
	})
	st = openTest(t, dir, open.In(&Options{NoBackground: true}, open.Environment{System: vfs.System{FS: fsys}}))
	for _, filters := range [][]Filter{nil, {InCategory("k")}, {InSession("s")}, {InSession("s"), InCategory("k")}, {After("0"), InCategory("k")}} {
		for _, q := range []Query{{Vector: []float32{1, 2}}, {Like: "b"}, {Text: "word"}, {Vector: []float32{1, 2}, Limit: 1}} {
			want := 2
			if q.Like != "" || q.Limit == 1 { // nor does it take another one's place
				want = 1
			}
			hits, err := st.Search(ctx, q, filters...)
			if len(hits) != want || err == nil || !strings.Contains(err.Error(), "a.json") || errors.Is(err, ErrNotFound) {
				t.Errorf("%d filters, %+v: %q, %v", len(filters), q, idsOf(hits), err)
			}
		}
	}
}
