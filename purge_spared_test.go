package varve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// told is what nobody may read again.
const told = "what nobody may read again"

func toldSecrets(ids ...string) *secrets {
	return &secrets{ids: ids, parts: map[string][]byte{"it at 0": []byte(told)}}
}

// A purge spares the files of other memories, which may be those of a purge before it that did not come to its end.
func TestPurgeAfterAnother(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := toldSecrets("secret")
	var made *rig
	cuts(t, func(t *testing.T) *rig {
		if made == nil {
			r := &rig{disk: crash.New()}
			st, err := Open(ctx, "/s", r.options(1))
			for i, id := range []string{"a", "secret", "b"} {
				if err == nil {
					_, err = st.Put(ctx, Memory{ID: id, Content: []string{"x", told, "y"}[i]})
				}
			}
			if err = errors.Join(err, st.Close()); err != nil {
				t.Fatal(err)
			}
			made = r
		}
		return made.lose(crash.KeepAll, 1)
	}, nil, func(r *rig) error {
		st, err := Open(ctx, "/s", r.options(2))
		if err != nil {
			return err
		}
		r.disk.KeepFreed()
		_, err = st.Admin().Purge(ctx, "secret")
		return errors.Join(err, st.Close())
	}, func(t *testing.T, r *rig, done bool) {
		st, err := Open(ctx, "/s", r.options(3))
		if err != nil {
			t.Fatal(err)
		}
		r.disk.KeepFreed()
		for _, id := range []string{"b", "secret"} {
			if err := purgeTails(ctx, st, id); err != nil {
				t.Errorf("purge of %s: %v", id, err)
			}
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		s.checkFreed(t, r.disk, true)
		if left := s.traces(t, storetest.Of(r.options(4)).System.FS, "/s"); len(left) > 0 {
			t.Error(left[0])
		}
	})
}

// A round that was cut has put documents into inodes of others, whose blocks on the disk may still have what
// these were: the purge that comes next overwrites what it displaces there too. killed: another process,
// which the purge is of, goes on; else the power is lost.
func TestPurgeAfterACutRound(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var ids []string
	s := toldSecrets()
	for i := range 90 {
		id := fmt.Sprintf("m%03d", i)
		if ids = append(ids, id); i%3 == 0 {
			s.ids = append(s.ids, id)
		}
	}
	put := func(st *Store, content func(i int) string) error {
		for i, id := range ids {
			if _, err := st.Put(ctx, Memory{ID: id, Content: content(i)}); err != nil {
				return err
			}
		}
		return nil
	}
	first := func(i int) string {
		if i%3 == 0 {
			return strings.Repeat(told, 300)
		}
		return "x"
	}
	second := func(i int) string { return strings.Repeat("z", 6000) }
	third := func(i int) string { return fmt.Sprint("short ", i) }
	made := &rig{disk: crash.New()}
	st, err := Open(ctx, "/s", made.options(1))
	if err == nil {
		err = errors.Join(put(st, first), st.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	purge := func(t *testing.T, r *rig, st *Store) {
		r.disk.KeepFreed()
		err := put(st, third)
		if err == nil {
			err = purgeTails(ctx, st, s.ids...)
		}
		if err = errors.Join(err, st.Close()); err != nil {
			t.Error(err)
		}
		s.checkFreed(t, r.disk, true)
	}
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		cuts(t, func(t *testing.T) *rig { return made.lose(crash.KeepAll, 1) }, nil, func(r *rig) error {
			st, err := Open(ctx, "/s", r.options(2))
			if err == nil {
				err = put(st, second)
			}
			if err == nil {
				err = errors.Join(st.Flush(ctx), st.Close())
			}
			return err
		}, func(t *testing.T, r *rig, _ bool) {
			st, err := Open(ctx, "/s", r.options(3))
			if err != nil {
				t.Fatal(err)
			}
			purge(t, r, st)
		})
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		proofs.OneGoroutine(t)
		step := 13
		if !proofs.Long() {
			step = proofs.Every(61)
		}
		if os.Getenv("VARVE_STEP") != "" {
			step = 1
		}
		for at, died := 1, true; died; at += step {
			r := made.lose(crash.KeepAll, 1)
			one, err := Open(ctx, "/s", r.options(2))
			if err != nil {
				t.Fatal(err)
			}
			if err := put(one, second); err != nil {
				t.Fatal(err)
			}
			two, err := Open(ctx, "/s", (&rig{disk: r.disk, clock: r.clock}).options(3))
			if err != nil {
				t.Fatal(err)
			}
			r.ops, r.dieAt = 0, at
			if err, died = alone(func() error { return one.Flush(ctx) }); err != nil {
				t.Fatal(err)
			}
			purge(t, r, two)
			if t.Failed() {
				t.Fatalf("killed at operation %d", at)
			}
		}
	})
}
