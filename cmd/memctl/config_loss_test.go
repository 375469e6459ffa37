package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// A setting that removes history which is kept says how much and since when; one that removes nothing
// says nothing.
func TestHistoryLoss(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st, err := varve.Open(ctx, dir,
		storetest.In(&varve.Options{SegmentSize: 64 << 10, NoBackground: true},
			storetest.Environment{System: vfs.System{SpillBytes: 64 << 10}}))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		text := make([]byte, 1500)
		for j := range text {
			text[j] = 'a' + byte(random.IntN(26))
		}
		if _, err := st.Put(ctx, varve.Memory{ID: "k", Content: string(text)}); err != nil {
			t.Fatal(err)
		}
		if i%40 == 39 {
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	was := st.Admin().Config()
	n := st.Admin().Stats()
	if n.HistoryBytes < 64<<10 {
		t.Fatalf("%d bytes of history", n.HistoryBytes)
	}
	bytes := func(n int64) varve.Config { c := was; c.HistoryBytes = &n; return c }
	days := was
	days.HistoryDays = 7
	for _, c := range []struct {
		name    string
		was, is varve.Config
		now     time.Time
		loses   string // "" for nothing
	}{
		{"the same", was, was, time.Now(), ""},
		{"more", was, bytes(1 << 30), time.Now(), ""},
		{"enough", was, bytes(n.HistoryBytes), time.Now(), ""},
		{"fewer", was, bytes(n.HistoryBytes / 2), time.Now(),
			"KiB of history, which begins at " + n.HistorySince.Local().Format("2006-01-02")},
		{"none", was, bytes(0), time.Now(), "cannot be restored"},
		{"the default again", bytes(1 << 40), was, time.Now(), ""},
		{"days that are not over", was, days, time.Now(), ""},
		{"days", was, days, time.Now().Add(8 * 24 * time.Hour),
			"the part older than " + time.Now().Add(24*time.Hour).Format("2006-01-02")},
		{"days no more", days, was, time.Now().Add(8 * 24 * time.Hour), ""},
	} {
		got := historyLoss(st, &c.was, &c.is, c.now)
		if (got == "") != (c.loses == "") || !strings.Contains(got, c.loses) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
