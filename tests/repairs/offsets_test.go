package repairs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/repair"
)

// offsetsFaults returns the findings about the offsets of the index; any other finding is a failure.
func offsetsFaults(t *testing.T, st *varve.Store) (n int) {
	t.Helper()
	for f, err := range st.Admin().Verify(context.Background(), repair.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind != repair.IndexDamaged || f.Path != "wal/offsets" || f.Next != repair.NextFlush {
			t.Errorf("%s", f)
		}
		n++
	}
	return n
}

// A large index has offsets. If they are missing or damaged, every look-up is right all the same, damage is named by
// who meets it and by verify, and the next flush writes them again.
func TestOffsetsOfTheIndex(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "wal", "offsets")
	var named []string
	open := func() *varve.Store {
		st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true, Listener: func(e varve.Event) {
			if e.Kind == varve.EventCorruption {
				named = append(named, e.Path)
			}
		}})
		fixture.Must(t, err)
		return st
	}
	const n = 5000
	key := func(i int) string { return fmt.Sprintf("memory-%d", i*7919%n) }
	all := func(st *varve.Store) {
		t.Helper()
		for i := range n {
			if m, err := st.Get(ctx, key(i)); err != nil || m.Content != fmt.Sprint("text ", i) {
				t.Fatal(key(i), m.Content, err)
			}
			if _, err := st.Get(ctx, key(i)+"x"); !errors.Is(err, errs.ErrNotFound) {
				t.Fatal(err)
			}
		}
	}
	st := open()
	for i := 0; i < n; i += 1000 {
		b := new(varve.Batch)
		for j := range 1000 {
			b.Put(varve.Memory{ID: key(i + j), Content: fmt.Sprint("text ", i+j)})
		}
		fixture.Must(t, st.Apply(ctx, b))
	}
	fixture.Must(t, st.Admin().Compact(ctx))
	whole := fixture.ReadBytes(t, path)
	all(st)
	fixture.Must(t, st.Close())

	fixture.Must(t, os.Remove(path)) // as in a store that an older program wrote
	st = open()
	all(st)
	if got := offsetsFaults(t, st); got != 0 {
		t.Errorf("offsets that are missing are %d faults", got)
	}
	fixture.Must(t, st.Flush(ctx))
	if got := fixture.ReadBytes(t, path); string(got) != string(whole) {
		t.Error("the next flush did not write the offsets that were there")
	}
	fixture.Must(t, st.Close())

	fixture.Alter(t, path, func(b []byte) []byte {
		for at := 4096 + 100; at < len(b); at += 4096 {
			b[at] ^= 1
		}
		return b
	})
	st = open()
	all(st)
	if len(named) != 1 || named[0] != "wal/offsets" {
		t.Errorf("named %q", named)
	}
	if got := offsetsFaults(t, st); got != 1 {
		t.Errorf("verify has %d findings", got)
	}
	fixture.Must(t, st.Close())

	st = open() // it has met no damage
	fixture.Must(t, st.Admin().Compact(ctx))
	if got := fixture.ReadBytes(t, path); string(got) != string(whole) {
		t.Error("memctl flush did not write damaged offsets again")
	}
	if got := offsetsFaults(t, st); got != 0 {
		t.Errorf("after a flush verify has %d findings", got)
	}
	all(st)
	fixture.Must(t, st.Close())
}
