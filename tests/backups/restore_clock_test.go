package backups

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

// A clock that is set to any time between any two commits. The moment of a time is the last commit at
// which the clock showed that time or an earlier one, in the backup and with the living log; watching
// from a time begins at the first commit at which it showed that time or a later one.
func TestRestoreClockSet(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	seed := storetest.Seed(t, ".")
	for round := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, round))
		dir := t.TempDir()
		clock := fixture.ClockAt(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
		o := &varve.Options{SegmentSize: 64 << 10, NoBackground: true, Clock: clock.Now}
		living := filepath.Join(dir, "s")
		st := fixture.Open(t, living, o)
		var readings []time.Time
		var versions []uint64
		put := func() {
			t.Helper()
			switch random.IntN(8) {
			case 0:
				clock.Add(10 * 365 * 24 * time.Hour)
			case 1, 2:
				clock.Add(-5 * 365 * 24 * time.Hour)
			default:
				clock.Add(time.Duration(random.IntN(100)) * time.Hour)
			}
			clock.Add(10 * time.Second) // no two are within the second by which a frame may be ahead
			m, err := st.Put(ctx,
				varve.Memory{ID: fmt.Sprintf("m%03d", len(readings)), Content: fmt.Sprint("written at ", clock.Now())})
			if err != nil {
				t.Fatal(err)
			}
			readings, versions = append(readings, clock.Now()), append(versions, m.Version)
		}
		for range 40 {
			put()
		}
		backup := filepath.Join(dir, "b")
		info, err := st.Backup(ctx, backup, varve.BackupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		whole := len(readings) // commits in the backup
		for range 40 {
			put()
		}
		for i := range readings {
			v, err := st.GetAt(ctx, fmt.Sprintf("m%03d", i), versions[i])
			if err != nil || !v.Time.Equal(readings[i]) {
				t.Fatalf("seed %d, round %d: commit %d at %s is said to be of %s, %v", seed, round, i, readings[i], v.Time, err)
			}
		}
		for n := range 12 {
			i := random.IntN(len(readings))
			at := readings[i].Add(time.Duration(random.IntN(3)-1) * 4 * time.Second)
			last, first := -1, len(readings)
			for j, r := range readings {
				if !r.After(at) {
					last = j
				}
				if !r.Before(at) && j < first {
					first = j
				}
			}
			want := st.Admin().Stats().Durable
			if first < len(readings) {
				want = versions[first]
			}
			if got, err := st.Admin().PositionAt(ctx, at); err != nil || got != want {
				t.Errorf("seed %d, round %d: since %s is %d, want %d, %v", seed, round, at, got, want, err)
			}
			to := filepath.Join(dir, fmt.Sprint("r", n))
			r, err := varve.Restore(ctx, backup, to,
				&varve.RestoreOptions{Time: at, Log: living, Options: &varve.Options{Clock: clock.Now}})
			if last < whole-1 {
				if no := (*varve.MomentError)(nil); !errors.As(err, &no) {
					t.Errorf("seed %d, round %d: %s is the moment of commit %d, before the backup, which is whole at %d: %v", seed,
						round, at, last, whole, err)
				}
				continue
			}
			if err != nil || r.Memories != int64(last+1) ||
				last >= whole && (r.Moment.LSN != versions[last] || !r.Moment.Time.Equal(readings[last])) {
				t.Errorf("seed %d, round %d: restored to %s: %+v, %v; want %d memories, the last of %s", seed, round, at, r, err,
					last+1, readings[last])
			}
		}
		// Without the living log: no time after the backup, since later commits may have it.
		if _, err := varve.Restore(ctx, backup, filepath.Join(dir, "late"),
			&varve.RestoreOptions{Time: info.Until.Add(time.Second)}); err == nil {
			t.Errorf("seed %d, round %d: restored to behind the backup", seed, round)
		}
		if r, err := varve.Restore(ctx, backup, filepath.Join(dir, "end"),
			&varve.RestoreOptions{Time: info.Until}); err != nil || r.Memories != int64(whole) {
			t.Errorf("seed %d, round %d: restored to the end of the backup: %+v, %v", seed, round, r, err)
		}
	}
}
