package limits

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/retention"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// A clock that jumps ahead twice, while no process is running in between, deletes nothing: an hour of
// the machine's uptime has to pass between the two, in one boot.
func TestSweepTwoJumps(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, what := range []string{"expires_at", "max_age"} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			c, up := fixture.ClockAt(time.Unix(1_700_000_000, 0)), time.Hour
			o := storetest.In(&varve.Options{Clock: c.Now, NoBackground: true},
				storetest.Environment{System: vfs.System{Uptime: func() time.Duration { return up }}})
			m := varve.Memory{ID: "a", Content: "x"}
			st := fixture.Open(t, dir, o)
			if what == "max_age" {
				fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxAge = 30 * 24 * 3600 })
			} else {
				m.ExpiresAt = c.Now().Add(30 * 24 * time.Hour)
			}
			if _, err := st.Put(ctx, m); err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			// run opens the store for a moment, and reports whether the memory still exists.
			run := func() bool {
				t.Helper()
				st, err := varve.Open(ctx, dir, o)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(st.Flush(ctx), st.Close()); err != nil {
					t.Fatal(err)
				}
				_, err = os.Stat(filepath.Join(dir, "memories", "a.json"))
				return err == nil
			}
			later := func(wall, real time.Duration) { c.Add(wall); up += real }
			const year = 365 * 24 * time.Hour
			for i := range 5 {
				later(year, 10*time.Minute)
				if !run() {
					t.Fatalf("deleted by the jump number %d", i+1)
				}
			}
			if later(time.Minute, 9*time.Minute); !run() {
				t.Fatal("deleted 59 minutes after the first of the jumps was seen")
			}
			// Another boot: the hour begins again.
			name := filepath.Join(dir, "wal", retention.ExpiryName)
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			first, second, _ := strings.Cut(string(b), "\n")
			digit := "0"
			if second[0] == '0' {
				digit = "1"
			}
			if err := os.WriteFile(name, []byte(first+"\n"+digit+second[1:]), 0o600); err != nil {
				t.Fatal(err)
			}
			if later(2*time.Hour, 2*time.Hour); !run() {
				t.Fatal("deleted at once after a boot")
			}
			if later(59*time.Minute, 59*time.Minute); !run() {
				t.Fatal("deleted within an hour after a boot")
			}
			later(2*time.Minute, 2*time.Minute)
			if what == "max_age" { // of which the first note was made when nothing was old
				if !run() {
					t.Fatal("deleted by the note of another time")
				}
				later(61*time.Minute, 61*time.Minute)
			}
			if run() {
				t.Error("never deleted")
			}
		})
	}
}

// If no uptime is known, one process has to see the hour pass.
func TestSweepWithoutUptime(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	storetest.Inner(st).Scopes.Tune().Uptime = nil
	n := retention.SweepNote{Cut: time.Now().Add(-2 * time.Hour).UTC().Round(0)}
	if passed, ok := storetest.Inner(st).Retention.Expiry.Passed(&n); !ok || passed > time.Minute {
		t.Errorf("%v have passed, %v", passed, ok)
	}
	s := &storetest.Inner(st).Retention.Expiry.Seen
	s.At -= 2 * time.Hour
	if passed, ok := storetest.Inner(st).Retention.Expiry.Passed(&n); !ok || passed < 2*time.Hour {
		t.Errorf("%v have passed, %v", passed, ok)
	}
	n.Cut = n.Cut.Add(time.Second)
	if passed, ok := storetest.Inner(st).Retention.Expiry.Passed(&n); !ok || passed > time.Minute {
		t.Errorf("of another note %v have passed, %v", passed, ok)
	}
}

// unknownBoot is a machine that does not report its boot.
type unknownBoot struct{ vfs.FS }

func (f unknownBoot) Host() vfs.Host {
	h := f.FS.Host()
	h.Boot = [2]uint64{}
	return h
}

// An uptime is ignored if it is not known to which boot it belongs.
func TestSweepInUnknownBoot(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: unknownBoot{vfs.OS()}}}))
	storetest.Inner(st).Scopes.Tune().Uptime = func() time.Duration { return 5 * time.Hour }
	if err := storetest.Inner(st).Retention.Expiry.Note(time.Now().Add(-2 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	n, err := storetest.Inner(st).Retention.Expiry.Read()
	if err != nil || n.Cut.IsZero() {
		t.Fatal(n, err)
	}
	if passed, ok := storetest.Inner(st).Retention.Expiry.Passed(&n); ok && passed > time.Hour {
		t.Errorf("%v are said to have passed since a note that was just made", passed)
	}
}

func TestSweepNote(t *testing.T) {
	t.Parallel()
	cut := time.Unix(1_700_000_000, 5).UTC()
	for _, n := range []retention.SweepNote{{Cut: cut}, {Cut: cut, Boot: [2]uint64{1, 1 << 63}, Up: 90 * time.Minute}} {
		if got := retention.ParseSweepNote(string(n.Text())); got != n {
			t.Errorf("%q: %+v", n.Text(), got)
		}
	}
	for _, text := range []string{"", "\n", "yesterday\n", "yesterday\n00000000000000010000000000000001 1h0m0s\n"} {
		if got := retention.ParseSweepNote(text); got != (retention.SweepNote{}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	good := string((&retention.SweepNote{Cut: cut}).Text())
	for _, text := range []string{good + "x", good + "00000000000000010000000000000001\n", good + "01 1h\n",
		good + "0000000000000001000000000000000g 1h\n"} {
		if got := retention.ParseSweepNote(text); got != (retention.SweepNote{Cut: cut}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
