package backups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/working"
)

// FAILURES 196: whether log and archive have the text of working memory that a change deletes is decided
// by positions. The time at which the scope was created proves nothing: the clock may have been ahead,
// or that of another machine. Nor does an earlier answer, if the archive was cut since.
func TestCopyFirstByPosition(t *testing.T) {
	t.Parallel()
	scope := working.Scope{Session: "s"}
	for _, ahead := range []time.Duration{0, 10 * 365 * 24 * time.Hour} {
		for _, how := range []string{"cut", "cut while it is open", "clone"} {
			t.Run(fmt.Sprintf("%s/ahead by %v", how, ahead), func(t *testing.T) {
				t.Parallel()
				ctx := context.Background()
				c := fixture.ClockAt(time.Unix(1_800_000_000, 0))
				in := func() *varve.Options {
					o := c.On(&varve.Options{NoBackground: true, Clock: c.Tick, SegmentSize: 64 << 10})
					storetest.Of(o).System.SpillBytes = 64 << 10
					return o
				}
				top := t.TempDir()
				dir := filepath.Join(top, "from")
				st := fixture.Open(t, dir, in())
				begin := func() *working.Memory {
					t.Helper()
					wm, err := st.Working().Open(ctx, scope, nil)
					if err != nil {
						t.Fatal(err)
					}
					return wm
				}
				again := func() *working.Memory {
					t.Helper()
					if err := st.Close(); err != nil {
						t.Fatal(err)
					}
					st = fixture.Open(t, dir, in())
					return begin()
				}
				c.Jump(ahead)
				wm := begin()
				if err := errors.Join(wm.Set(ctx, "v", "only copy v"), st.Flush(ctx)); err != nil {
					t.Fatal(err)
				}
				c.Jump(-ahead)
				if how == "clone" {
					if err := st.Close(); err != nil {
						t.Fatal(err)
					}
					to := filepath.Join(top, "store")
					for _, name := range []string{"working", "config.json", ".gitignore"} {
						if err := fixture.TakeAlong(filepath.Join(dir, name), filepath.Join(to, name)); err != nil {
							t.Fatal(err)
						}
					}
					dir = to
					st = fixture.Open(t, dir, in())
					wm = begin()
				} else {
					wm = again()
				}
				set := func(from int) {
					t.Helper()
					for i := range 70 { // more than are read back
						if err := wm.Set(ctx, fmt.Sprint("m", from+i), i); err != nil {
							t.Fatal(err)
						}
					}
				}
				set(0)
				if how == "cut while it is open" { // this process knows that the log has everything
					if err := wm.Set(ctx, "m1", "another"); err != nil {
						t.Fatal(err)
					}
				}
				if how != "clone" {
					none := int64(0)
					fixture.LimitTo(t, st, func(c *varve.Config) { c.HistoryBytes = &none })
					for i := range 8 {
						text := fixture.RandomText(20 << 10)
						if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: text}); err != nil {
							t.Fatal(err)
						}
						if err := st.Admin().Compact(ctx); err != nil {
							t.Fatal(err)
						}
					}
				}
				if how != "clone" {
					set(100)
				}
				if how == "cut" {
					wm = again()
				}
				if logHas(t, st, "only copy v") {
					t.Fatal("the log has it still")
				}
				if _, err := wm.Drop(ctx); err != nil {
					t.Fatal(err)
				}
				if !logHas(t, st, "only copy v") {
					t.Error("it is nowhere")
				}
				if err := errors.Join(st.Flush(ctx), st.Close()); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// A copy of the file in quarantine, made because the log has no space for one, does not have what was
// written since: once the log has released that, the next change that deletes it makes another copy.
func TestCopyOfAFileIsOfItsTime(t *testing.T) {
	t.Parallel()
	ctx, top := t.Context(), t.TempDir()
	in := func() *varve.Options {
		o := storetest.In(&varve.Options{NoBackground: true, SegmentSize: 64 << 10}, storetest.Environment{})
		storetest.Of(o).System.SpillBytes = 64 << 10
		return o
	}
	scope := working.Scope{Session: "s"}
	from, dir := filepath.Join(top, "from"), filepath.Join(top, "store")
	st := fixture.Open(t, from, in())
	wm, err := st.Working().Open(ctx, scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := wm.Set(ctx, fmt.Sprint("v", i), fixture.RandomText(20<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(st.Flush(ctx), st.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"working", "config.json", ".gitignore"} {
		if err := fixture.TakeAlong(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	st = fixture.Open(t, dir, in())
	if wm, err = st.Working().Open(ctx, scope, nil); err != nil {
		t.Fatal(err)
	}
	copies := func() int {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "quarantine", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if err := errors.Join(wm.Set(ctx, "v0", "shorter"), wm.Set(ctx, "v0", "shorter still"),
		wm.Set(ctx, "later", "only copy later"), st.Flush(ctx)); err != nil {
		t.Fatal(err)
	}
	first := copies()
	if first == 0 {
		t.Fatal("nothing was copied to quarantine: the test tests nothing")
	}
	none := int64(0)
	fixture.LimitTo(t, st, func(c *varve.Config) { c.HistoryBytes = &none })
	for i := range 8 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: fixture.RandomText(20 << 10)}); err != nil {
			t.Fatal(err)
		}
		if err := st.Admin().Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if logHas(t, st, "only copy later") {
		t.Fatal("the log has it still")
	}
	if _, err := wm.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if len(filesWith(t, dir, "only copy later")) == 0 && !logHas(t, st, "only copy later") {
		t.Errorf("it is nowhere: %d files in quarantine, %d before", copies(), first)
	}
}

// The file of a scope records from which entry on log and archive have all of it, so that processes do
// not each copy it again.
func TestCopyFirstOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	grown := uint64(0)
	for i := range 5 {
		st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
			storetest.Environment{System: vfs.System{}}))
		before := st.Admin().Stats().Durable
		wm, err := st.Working().Open(ctx, working.Scope{Session: "s"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(wm.Set(ctx, "v", i), wm.Set(ctx, fmt.Sprint("large", i), strings.Repeat("x", 100<<10)),
			st.Flush(ctx)); err != nil {
			t.Fatal(err)
		}
		grown = uint64(st.Admin().Stats().Durable - before)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if grown > 150<<10 {
		t.Errorf("two changes of 100 KiB took %d bytes of log", grown)
	}
	names, err := filepath.Glob(filepath.Join(dir, "working", "*.json"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil || !strings.Contains(string(b), `"whole_at": `) {
		t.Errorf("%s, %v", b[max(0, len(b)-300):], err)
	}
}
