package backups

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// history_bytes and history_days take effect without opening the store again: the oldest history is
// removed with the next index, or by Compact if nothing was written, the rest stays, and Stats reports
// it.
func TestHistorySettings(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := fixture.ClockAt(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	clock := c.Tick
	var cut []varve.Event
	o := c.On(&varve.Options{SegmentSize: 64 << 10, NoBackground: true, Clock: clock, Listener: func(e varve.Event) {
		if e.Kind == varve.EventArchiveOld {
			cut = append(cut, e)
		}
	}})
	storetest.Of(o).System.SpillBytes = 64 << 10
	st := fixture.Open(t, t.TempDir(), o)
	random := rand.New(rand.NewPCG(1, 2)) // data that zstd does not compress
	day := func() {
		t.Helper()
		c.Add(24 * time.Hour)
		for i := range 100 {
			text := make([]byte, 1500)
			for j := range text {
				text[j] = 'a' + byte(random.IntN(26))
			}
			if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: string(text)}); err != nil {
				t.Fatal(err)
			}
			if i%50 == 49 {
				if err := st.Admin().Compact(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	set := func(change func(c *varve.Config)) {
		t.Helper()
		if err := st.Admin().UpdateConfig(ctx, func(c *varve.Config) error { change(c); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	began := clock()
	for range 6 {
		day()
	}
	all := st.Admin().Stats()
	if all.HistoryBytes < 300<<10 || all.HistorySince.Sub(began).Abs() > time.Hour {
		t.Fatalf("%d bytes since %v, begun at %v", all.HistoryBytes, all.HistorySince, began)
	}
	set(func(c *varve.Config) { c.HistoryDays = 3 })
	// One reading of the clock removes nothing: a put with a clock that is a year ahead and is corrected
	// afterwards.
	c.Jump(365 * 24 * time.Hour)
	if _, err := st.Put(ctx, varve.Memory{ID: "ahead", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	c.Jump(-365 * 24 * time.Hour)
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if s := st.Admin().Stats(); s.HistoryBytes < all.HistoryBytes || len(cut) > 0 {
		t.Fatalf("%d bytes of history are left of %d by a clock that was ahead once: %+v", s.HistoryBytes, all.HistoryBytes,
			cut)
	}
	// Nor do several, hours apart, with a correct clock in between.
	set(func(c *varve.Config) { c.HistoryDays = 90 })
	for range 3 {
		c.Jump(91 * 24 * time.Hour)
		if err := st.Admin().Compact(ctx); err != nil {
			t.Fatal(err)
		}
		c.Jump(-91 * 24 * time.Hour)
		c.Add(2 * time.Hour)
		if err := st.Admin().Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if s := st.Admin().Stats(); s.HistoryBytes < all.HistoryBytes || len(cut) > 0 {
		t.Fatalf("%d bytes of history are left of %d by a clock that was ahead several times: %+v", s.HistoryBytes,
			all.HistoryBytes, cut)
	}
	set(func(c *varve.Config) { c.HistoryDays = 3 })
	day()
	if len(cut) == 0 || cut[0].Bytes == 0 || !strings.Contains(cut[0].Note, "history_days") {
		t.Errorf("what was cut is not reported: %+v", cut)
	}
	if s := st.Admin().Stats(); s.HistorySince.Before(clock().Add(-5*24*time.Hour)) ||
		s.HistorySince.After(clock().Add(-2*24*time.Hour)) {
		t.Errorf("of three days it has what is since %v, now is %v", s.HistorySince, clock())
	}
	budget := int64(150 << 10)
	set(func(c *varve.Config) { c.HistoryDays, c.HistoryBytes = 0, &budget })
	day()
	if s := st.Admin().Stats(); s.HistoryBytes > budget || s.HistoryBytes < budget/2 {
		t.Errorf("of %d bytes it has %d", budget, s.HistoryBytes)
	}
	budget = 0 // nothing is written anymore
	set(func(c *varve.Config) { c.HistoryBytes = &budget })
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	s := st.Admin().Stats()
	if s.HistoryBytes != 0 || s.HistorySince.Before(clock().Add(-2*24*time.Hour)) {
		t.Errorf("of nothing it has %d bytes, since %v", s.HistoryBytes, s.HistorySince)
	}
}
