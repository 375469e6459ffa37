package logs

import (
	"fmt"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// The memories of a large batch, which several goroutines prepare, are written in its order: turns of a
// session that are put together are neighbours in the given order, and so are generated ids.
func TestBatchOrder(t *testing.T) {
	t.Parallel()
	const n = 3000
	turn := func(i int) varve.Memory {
		return varve.Memory{Content: fmt.Sprintf("turn %04d", i), Metadata: map[string]any{"session_id": "s"}}
	}
	for name, put := range map[string]func(*varve.Store) error{
		"apply": func(st *varve.Store) error {
			var b varve.Batch
			for i := range n {
				b.Put(turn(i))
			}
			return st.Apply(t.Context(), &b)
		},
		"put all": func(st *varve.Store) error {
			_, err := st.PutAll(t.Context(), func(yield func(varve.Memory) bool) {
				for i := 0; i < n && yield(turn(i)); i++ {
				}
			})
			return err
		},
	} {
		st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
		if err := put(st); err != nil {
			t.Fatal(name, err)
		}
		var last varve.Memory
		i := 0
		for m, err := range st.Memories(t.Context()) { // by id
			if err != nil {
				t.Fatal(name, err)
			}
			if m.Content != turn(i).Content || i > 0 && !m.Timestamp.After(last.Timestamp) {
				t.Fatalf("%s: %q at %v is behind %q at %v, as number %d", name, m.Content, m.Timestamp, last.Content,
					last.Timestamp, i)
			}
			last, i = m, i+1
		}
		if i != n {
			t.Errorf("%s: %d memories", name, i)
		}
	}
}
