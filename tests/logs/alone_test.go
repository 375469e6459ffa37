package logs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// AloneAmong runs the function again if a memory that it requires was put, and for no other memory,
// whichever process puts it.
func TestAloneAmong(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	st, other := fixture.Open(t, dir, &varve.Options{NoBackground: true}),
		fixture.Open(t, dir, &varve.Options{NoBackground: true})
	wanted := func(id string, doc []byte) bool {
		return strings.HasPrefix(id, "w") && (doc == nil || strings.Contains(string(doc), "wanted"))
	}
	put := func(by *varve.Store, id, content string) {
		t.Helper()
		if _, err := by.Put(ctx, varve.Memory{ID: id, Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		by          *varve.Store
		id, content string
		runs        int
	}{
		{st, "w1", "wanted", 2},
		{other, "w1", "wanted", 2}, // as it was
		{other, "w2", "wanted", 2},
		{st, "o1", "wanted", 1},
		{other, "o2", "wanted", 1},
		{other, "w3", "something", 1},
		{other, "w4", storetest.Text(40_000), 2},
	} {
		runs := 0
		err := st.Transact(ctx, func(tx *varve.Tx) error {
			if err := tx.AloneAmong(wanted); err != nil {
				return err
			}
			if runs++; runs == 1 {
				put(c.by, c.id, c.content)
			}
			_, err := tx.Put(varve.Memory{ID: fmt.Sprint("r", i), Content: "result"})
			return err
		})
		if err != nil || runs != c.runs {
			t.Errorf("%s by %v: %d runs, not %d, %v", c.id, c.by == other, runs, c.runs, err)
		}
	}
}

// No such put is missed because of a flush or a new index in between.
func TestAloneAmongRounds(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	st, other := fixture.Open(t, dir, &varve.Options{NoBackground: true}),
		fixture.Open(t, dir, &varve.Options{NoBackground: true})
	runs := 0
	err := st.Transact(ctx, func(tx *varve.Tx) error {
		if err := tx.AloneAmong(func(id string, _ []byte) bool { return id == "w" }); err != nil {
			return err
		}
		if runs++; runs == 1 {
			if _, err := other.Put(ctx, varve.Memory{ID: "w", Content: "wanted"}); err != nil {
				return err
			}
			if err := other.Admin().Compact(ctx); err != nil {
				return err
			}
			if _, err := st.Get(ctx, "w"); err != nil { // maps the newer index
				return err
			}
		}
		_, err := tx.Put(varve.Memory{ID: "r", Content: "result"})
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

// A transaction ends although a memory that it requires is put in each of its runs, in this process and
// in another: finally those puts wait, and their memories are there afterwards.
func TestAloneAmongEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, other := fixture.Open(t, dir, nil), fixture.Open(t, dir, nil)
	ctx, giveUp := context.WithTimeout(t.Context(), time.Minute)
	defer giveUp()
	var puts sync.WaitGroup
	for _, by := range []*varve.Store{st, other} {
		runs := 0
		err := st.Transact(ctx, func(tx *varve.Tx) error {
			if err := tx.AloneAmong(func(id string, _ []byte) bool { return strings.HasPrefix(id, "w") }); err != nil {
				return err
			}
			runs++
			id, done := fmt.Sprint("w", runs, by == st), make(chan struct{})
			puts.Go(func() {
				defer close(done)
				if _, err := by.Put(context.Background(), varve.Memory{ID: id, Content: "wanted"}); err != nil {
					t.Error(err)
				}
			})
			select {
			case <-done:
			case <-time.After(100 * time.Millisecond): // it waits, or is slow and takes part in the next run
			}
			tx.DeleteAll(id)
			_, err := tx.Put(varve.Memory{ID: fmt.Sprint("r", by == st), Content: strings.Repeat("result", 1000)})
			return err
		})
		if err != nil {
			t.Fatalf("after %d runs: %v", runs, err)
		}
		puts.Wait()
		if n, err := st.Count(t.Context(), varve.WithPrefix("w")); err != nil || n < int64(runs) {
			t.Errorf("%d memories, %d were put, %v", n, runs, err)
		}
	}
}

// A transaction that blocks others and is abandoned, or fails, lets them continue.
func TestAloneAmongGivesUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, other := fixture.Open(t, dir, nil), fixture.Open(t, dir, nil)
	for _, gone := range []bool{false, true} {
		ctx, giveUp := context.WithTimeout(t.Context(), 30*time.Second)
		runs, no := 0, errors.New("no")
		err := st.Transact(ctx, func(tx *varve.Tx) error {
			if err := tx.AloneAmong(func(id string, _ []byte) bool { return true }); err != nil {
				return err
			}
			short, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer end()
			_, err := other.Put(short, varve.Memory{ID: "w", Content: "wanted"})
			if runs++; errors.Is(err, context.DeadlineExceeded) {
				if gone {
					giveUp()
				} else {
					return no
				}
			}
			_, err = tx.Put(varve.Memory{ID: "r", Content: "result"})
			return err
		})
		giveUp()
		if !errors.Is(err, no) && !errors.Is(err, context.Canceled) {
			t.Errorf("after %d runs: %v", runs, err)
		}
		for _, by := range []*varve.Store{st, other} {
			if _, err := by.Put(t.Context(), varve.Memory{ID: "w", Content: "more"}); err != nil {
				t.Error(err)
			}
		}
	}
}
