package offsite

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// TestCloneCut: at whatever operation a clone is killed or fails, and whatever a loss of power leaves: the folder
// either opens as no store, or has everything. A clone that was called done has everything.
func TestCloneCut(t *testing.T) {
	t.Parallel()
	x, ctx := newOutsider(t), context.Background()
	want := map[string]string{}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		x.put(id, "text of "+id)
		want[id] = "text of " + id
	}
	x.check(x.st.Flush(ctx))
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	x.put("b", "changed") // is only in the log of the copy
	want["b"] = "changed"
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	for what, fault := range map[string]error{"killed": nil, "error": errors.New("injected"), "plain": nil} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			fixture.CutAtEach(t, func(*testing.T) *fixture.Rig {
				return &fixture.Rig{Disk: crash.New(), Clock: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
					Plain: what == "plain"}
			}, fault, func(r *fixture.Rig) error {
				_, err := varve.Clone(ctx, x.remote, "/clone", &varve.CloneOptions{Options: r.Options(2)})
				return err
			}, func(t *testing.T, r *fixture.Rig, done bool) {
				o := r.Options(3)
				o.ReadOnly = true
				fsys := storetest.Of(o).System.FS
				if mark, left := vfs.Unfinished(fsys, "/clone"); left {
					if done {
						t.Errorf("a clone that was called done has the mark %+v", mark)
					}
					if st, err := varve.Open(ctx, "/clone", o); err == nil {
						t.Error("an unfinished clone opens")
						_ = st.Close()
					}
					return
				}
				st, err := varve.Open(ctx, "/clone", o)
				if err != nil {
					if done || !errors.Is(err, varve.ErrNoStore) {
						t.Error(err)
					}
					return
				}
				if got := fixture.ContentsOf(t, st); !maps.Equal(got, want) {
					t.Errorf("done %v: the clone has %v", done, got)
				}
				for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
					if err != nil || f.Severity != varve.SeverityInfo {
						t.Errorf("done %v: %v, %v", done, f, err)
					}
				}
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
