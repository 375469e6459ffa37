package repair_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/repair"
)

// gapped is a store whose log had a hole and was repaired, and a backup that was made halfway before
// that.
type gapped struct {
	dir, backup string
	all         map[uint64]string // every version there was
	last        map[string]string // the newest text by id
	from        uint64            // the first version that is lost
	backedUp    uint64            // the newest one in the backup
}

func gappedStore(t *testing.T, seed uint64) *gapped {
	t.Helper()
	ctx, r := t.Context(), rand.New(rand.NewPCG(seed, 2))
	g := &gapped{dir: filepath.Join(t.TempDir(), "s"), backup: filepath.Join(t.TempDir(), "b"), last: map[string]string{}}
	g.all = holeStore(t, g.dir, r)
	o := &varve.Options{NoBackground: true, SegmentSize: 1 << 20}
	st, err := varve.Open(ctx, g.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Backup(ctx, g.backup, varve.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	begin := uint64(1 << 62)
	for i := range 240 {
		m := varve.Memory{ID: fmt.Sprintf("m%02d", i%60), Content: fmt.Sprintf("memory %d, later %d: %s", i%60, i, strings.Repeat("y", r.IntN(400)))}
		if m, err = st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
		if begin == 1<<62 {
			begin = m.Version
		}
		g.all[m.Version] = m.ID + " " + m.Content
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(g.dir, "wal", "00000001.wal")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	newest := uint64(0)
	for v, text := range g.all {
		newest = max(newest, v)
		if id := text[:3]; g.last[id] == "" {
			g.last[id] = text
		}
	}
	ids := map[string]uint64{}
	for v, text := range g.all {
		if v >= ids[text[:3]] {
			ids[text[:3]], g.last[text[:3]] = v, text
		}
	}
	base := begin / (1 << 20) * (1 << 20)
	at := int(begin-base) + r.IntN(int(newest-begin)/2)
	clear(b[at : at+5<<10])
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	apply(t, planOf(t, g.dir))
	have, _, gaps := pastOf(t, g.dir)
	g.from = 1 << 62
	for v := range g.all {
		if _, ok := have[v]; !ok && v < newest-60*1024 {
			g.from = min(g.from, v)
		}
		if v < begin {
			g.backedUp = max(g.backedUp, v)
		}
	}
	if gaps == 0 || g.from == 1<<62 {
		t.Fatalf("%d gaps, from %d", gaps, g.from)
	}
	return g
}

func opened(t *testing.T, dir string) *varve.Store {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// holds compares the memories of a store with the expected ones by id.
func holds(t *testing.T, what, dir string, want map[string]string) {
	t.Helper()
	st := opened(t, dir)
	defer st.Close()
	n := 0
	for m, err := range st.Memories(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; m.ID+" "+m.Content != want[m.ID] {
			t.Errorf("%s: %s is %.40q, not %.40q", what, m.ID, m.Content, want[m.ID])
		}
	}
	if n != len(want) {
		t.Errorf("%s: %d memories, not %d", what, n, len(want))
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		if err != nil || f.Severity != repair.Info {
			t.Errorf("%s: %v, %v", what, f, err)
		}
	}
}

// Operations on the whole history work beside a gap in it: a purge removes all data of a memory, before
// the gap and behind it, and keeps those of all others; a migration copies everything; a restore replays
// the log up to the gap, and refuses every moment behind it; undelete restores a deleted memory, and
// reports an unknown id as unknown.
func TestBesideAGap(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	seed := proofs.Seed(t, 0)
	g := gappedStore(t, seed)
	have, _, gaps := pastOf(t, g.dir)

	t.Run("restore", func(t *testing.T) {
		for v, text := range g.all {
			if v < g.backedUp {
				continue
			}
			dir := filepath.Join(t.TempDir(), "r")
			_, err := varve.Restore(ctx, g.backup, dir, &varve.RestoreOptions{Version: v, Log: g.dir})
			if v >= g.from {
				if !errors.Is(err, varve.ErrTruncated) {
					t.Errorf("to %d, behind the gap at %d: %v", v, g.from, err)
				}
				if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
					t.Errorf("to %d: a refused restore made %v", v, list)
				}
				continue
			}
			if err != nil {
				t.Errorf("to %d, in front of the gap at %d: %v", v, g.from, err)
				continue
			}
			want, newest := map[string]string{}, map[string]uint64{}
			for at, text := range g.all {
				if id := text[:3]; at <= v && at >= newest[id] {
					want[id], newest[id] = text, at
				}
			}
			if want[text[:3]] != text {
				t.Fatal("the test is wrong")
			}
			holds(t, fmt.Sprint("restored to ", v), dir, want)
		}
	})
	t.Run("backup", func(t *testing.T) {
		st := opened(t, g.dir)
		backup := filepath.Join(t.TempDir(), "b")
		_, err := st.Backup(ctx, backup, varve.BackupOptions{})
		if err = errors.Join(err, st.Close()); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "r")
		if _, err := varve.Restore(ctx, backup, dir, nil); err != nil {
			t.Fatal(err)
		}
		holds(t, "restored", dir, g.last)
	})
	t.Run("migrate", func(t *testing.T) {
		old, dir := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "new")
		fixture.CopyDir(t, g.dir, old)
		if _, err := varve.Migrate(ctx, old, dir, &varve.MigrateOptions{Switch: true}); err != nil {
			t.Fatal(err)
		}
		holds(t, "migrated", dir, g.last)
		if after, _, now := pastOf(t, dir); !maps.Equal(after, have) || now != gaps {
			t.Errorf("%d versions and %d gaps were taken over, of %d and %d", len(after), now, len(have), gaps)
		}
	})
	t.Run("purge", func(t *testing.T) {
		st := opened(t, g.dir)
		report, err := st.Admin().Purge(ctx, "m05")
		if err = errors.Join(err, st.Close()); err != nil {
			t.Fatal(report, err)
		}
		for name, text := range files(t, g.dir) {
			if strings.Contains(text, "memory 5, ") {
				t.Errorf("%s has a text of the purged memory", name)
			}
		}
		after, _, now := pastOf(t, g.dir)
		for v, text := range have {
			switch got, ok := after[v]; {
			case strings.HasPrefix(text, "m05 ") && ok:
				t.Errorf("version %d is still there: %.40q", v, got)
			case !strings.HasPrefix(text, "m05 ") && got != text:
				t.Errorf("version %d is %.40q after a purge of another, not %.40q", v, got, text)
			}
		}
		if now < gaps-1 {
			t.Errorf("%d histories had a gap, %d have after the purge", gaps, now)
		}
		delete(g.last, "m05")
		holds(t, "purged", g.dir, g.last)
	})
	t.Run("undelete", func(t *testing.T) {
		st := opened(t, g.dir)
		defer st.Close()
		if _, err := st.Undelete(ctx, "never"); !errors.Is(err, varve.ErrNotFound) || !errors.Is(err, varve.ErrTruncated) {
			t.Errorf("an unknown id: %v", err)
		}
		if err := st.Delete(ctx, "m07"); err != nil {
			t.Fatal(err)
		}
		if m, err := st.Undelete(ctx, "m07"); err != nil || "m07 "+m.Content != g.last["m07"] {
			t.Errorf("%q, %v", m.Content, err)
		}
	})
}
