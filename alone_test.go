package varve

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// AloneAmong runs the function again for a memory that is wanted and for no other, whoever puts it.
func TestAloneAmong(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	st, other := openTest(t, dir, &Options{NoBackground: true}), openTest(t, dir, &Options{NoBackground: true})
	wanted := func(id string, doc []byte) bool {
		return strings.HasPrefix(id, "w") && (doc == nil || strings.Contains(string(doc), "wanted"))
	}
	put := func(by *Store, id, content string) {
		t.Helper()
		if _, err := by.Put(ctx, Memory{ID: id, Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		by          *Store
		id, content string
		runs        int
	}{
		{st, "w1", "wanted", 2},
		{other, "w1", "wanted", 2}, // as it was
		{other, "w2", "wanted", 2},
		{st, "o1", "wanted", 1},
		{other, "o2", "wanted", 1},
		{other, "w3", "something", 1},
		{other, "w4", strings.Repeat("something long enough to be compressed ", 1000), 2},
	} {
		runs := 0
		err := st.Transact(ctx, func(tx *Tx) error {
			if err := tx.AloneAmong(wanted); err != nil {
				return err
			}
			if runs++; runs == 1 {
				put(c.by, c.id, c.content)
			}
			_, err := tx.Put(Memory{ID: fmt.Sprint("r", i), Content: "result"})
			return err
		})
		if err != nil || runs != c.runs {
			t.Errorf("%s by %v: %d runs, not %d, %v", c.id, c.by == other, runs, c.runs, err)
		}
	}
}

// A flush and an index that is mapped anew in between do not let one pass.
func TestAloneAmongRounds(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	st, other := openTest(t, dir, &Options{NoBackground: true}), openTest(t, dir, &Options{NoBackground: true})
	runs := 0
	err := st.Transact(ctx, func(tx *Tx) error {
		if err := tx.AloneAmong(func(id string, _ []byte) bool { return id == "w" }); err != nil {
			return err
		}
		if runs++; runs == 1 {
			if _, err := other.Put(ctx, Memory{ID: "w", Content: "wanted"}); err != nil {
				return err
			}
			if err := other.Admin().Compact(ctx); err != nil {
				return err
			}
			if _, err := st.Get(ctx, "w"); err != nil { // maps the newer index
				return err
			}
		}
		_, err := tx.Put(Memory{ID: "r", Content: "result"})
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("%d runs, %v", runs, err)
	}
}
