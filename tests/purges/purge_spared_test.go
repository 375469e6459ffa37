package purges

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// told is the text that must not be readable anymore.
const told = "what nobody may read again"

func toldSecrets(ids ...string) *secrets {
	return &secrets{ids: ids, parts: map[string][]byte{"it at 0": []byte(told)}}
}

// A purge spares the files of other memories, but must overwrite those that an earlier, interrupted purge has
// left.
func TestPurgeAfterAnother(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := toldSecrets("secret")
	var made *fixture.Rig
	fixture.CutAtEach(t, func(t *testing.T) *fixture.Rig {
		if made == nil {
			r := &fixture.Rig{Disk: crash.New()}
			st, err := varve.Open(ctx, "/s", r.Options(1))
			for i, id := range []string{"a", "secret", "b"} {
				if err == nil {
					_, err = st.Put(ctx, varve.Memory{ID: id, Content: []string{"x", told, "y"}[i]})
				}
			}
			if err = errors.Join(err, st.Close()); err != nil {
				t.Fatal(err)
			}
			made = r
		}
		return made.Lose(crash.KeepAll, 1)
	}, nil, func(r *fixture.Rig) error {
		st, err := varve.Open(ctx, "/s", r.Options(2))
		if err != nil {
			return err
		}
		r.Disk.KeepFreed()
		_, err = st.Admin().Purge(ctx, "secret")
		return errors.Join(err, st.Close())
	}, func(t *testing.T, r *fixture.Rig, done bool) {
		st, err := varve.Open(ctx, "/s", r.Options(3))
		if err != nil {
			t.Fatal(err)
		}
		r.Disk.KeepFreed()
		for _, id := range []string{"b", "secret"} {
			if err := purgeTails(ctx, st, id); err != nil {
				t.Errorf("purge of %s: %v", id, err)
			}
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		s.checkFreed(t, r.Disk, true)
		if left := s.traces(t, storetest.Of(r.Options(4)).System.FS, "/s"); len(left) > 0 {
			t.Error(left[0])
		}
	})
}

// An interrupted round has put documents into inodes of others, whose blocks on the disk may still have
// the old content: the next purge overwrites what it displaces there too. killed: another process, which
// makes the purge, continues; otherwise the power is lost.
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
	put := func(st *varve.Store, content func(i int) string) error {
		for i, id := range ids {
			if _, err := st.Put(ctx, varve.Memory{ID: id, Content: content(i)}); err != nil {
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
	made := &fixture.Rig{Disk: crash.New()}
	st, err := varve.Open(ctx, "/s", made.Options(1))
	if err == nil {
		err = errors.Join(put(st, first), st.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	purge := func(t *testing.T, r *fixture.Rig, st *varve.Store) {
		r.Disk.KeepFreed()
		err := put(st, third)
		if err == nil {
			err = purgeTails(ctx, st, s.ids...)
		}
		if err = errors.Join(err, st.Close()); err != nil {
			t.Error(err)
		}
		s.checkFreed(t, r.Disk, true)
	}
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		fixture.CutAtEach(t, func(t *testing.T) *fixture.Rig { return made.Lose(crash.KeepAll, 1) }, nil,
			func(r *fixture.Rig) error {
				st, err := varve.Open(ctx, "/s", r.Options(2))
				if err == nil {
					err = put(st, second)
				}
				if err == nil {
					err = errors.Join(st.Flush(ctx), st.Close())
				}
				return err
			}, func(t *testing.T, r *fixture.Rig, _ bool) {
				st, err := varve.Open(ctx, "/s", r.Options(3))
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
			r := made.Lose(crash.KeepAll, 1)
			one, err := varve.Open(ctx, "/s", r.Options(2))
			if err != nil {
				t.Fatal(err)
			}
			if err := put(one, second); err != nil {
				t.Fatal(err)
			}
			two, err := varve.Open(ctx, "/s", (&fixture.Rig{Disk: r.Disk, Clock: r.Clock}).Options(3))
			if err != nil {
				t.Fatal(err)
			}
			r.Ops, r.DieAt = 0, at
			if err, died = fixture.UntilKilled(func() error { return one.Flush(ctx) }); err != nil {
				t.Fatal(err)
			}
			purge(t, r, two)
			if t.Failed() {
				t.Fatalf("killed at operation %d", at)
			}
		}
	})
}
