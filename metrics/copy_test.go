package metrics

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varve-db/varve"
)

// TestCopyMetrics: the metrics of a copy are missing for a store without a copy. For a copy to which no process sends,
// they tell how far it is behind, by the clock of the store, and that sending fails.
func TestCopyMetrics(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	var hours atomic.Int64
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	o := &varve.Options{NoBackground: true, StateDir: filepath.Join(dir, "state"),
		Clock: func() time.Time { return begin.Add(time.Duration(hours.Load()) * time.Hour) }}
	st, err := varve.Open(ctx, filepath.Join(dir, "store"), o)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	defer func() { check(st.Close()) }()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(New(func() *varve.Store { return st }))
	now := func() map[string]float64 {
		t.Helper()
		got := map[string]float64{}
		families, err := registry.Gather()
		check(err)
		for _, f := range families {
			got[f.GetName()] = value(f.GetMetric()[0])
		}
		return got
	}
	if got, is := now()["varve_copy_behind_bytes"]; is {
		t.Errorf("without a copy: %v", got)
	}
	url := "file://" + filepath.ToSlash(filepath.Join(dir, "copy"))
	r, err := varve.CreateFolder(ctx, url)
	check(err)
	check(st.Admin().Offsite().Add(ctx, r, url))
	got := now()
	if behind, is := got["varve_copy_behind_bytes"]; !is || behind != 0 || got["varve_copy_lag_seconds"] != 0 {
		t.Errorf("a copy that has everything: %v", got)
	}
	_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "one"})
	check(err)
	got = now()
	if got["varve_copy_behind_bytes"] == 0 || got["varve_copy_failing"] != 1 {
		t.Errorf("a copy to which no process sends: %v", got)
	}
	if got["varve_copy_lag_seconds"] != 0 {
		t.Errorf("no process has recorded when it sent everything: %v", got)
	}

	// A process sends; then the place is away for two hours of the store's clock.
	check(st.Close())
	o.NoBackground, o.Remote = false, varve.OpenFolder
	st, err = varve.Open(ctx, filepath.Join(dir, "store"), o)
	check(err)
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within 30 s: %s: %v, %+v", what, now(), st.Health(ctx).Copy)
			}
		}
	}
	until("everything is sent", func() bool {
		return now()["varve_copy_behind_bytes"] == 0 && now()["varve_copy_last_success_timestamp_seconds"] != 0
	})
	place := filepath.Join(dir, "copy")
	check(os.Rename(place, place+".away"))
	until("sending fails", func() bool { return now()["varve_copy_failing"] == 1 })
	hours.Store(2)
	_, err = st.Put(ctx, varve.Memory{ID: "b", Content: "two"})
	check(err)
	got = now()
	want := (2 * time.Hour).Seconds()
	if got["varve_copy_lag_seconds"] != want || got["varve_copy_behind_bytes"] == 0 {
		t.Errorf("a copy that was reached two hours ago: %v", got)
	}
	s := st.Health(ctx).Copy
	if s.Lag.Seconds() != want || s.Behind == 0 || s.Sent == 0 || !s.Success.Equal(begin) {
		t.Errorf("%+v", s)
	}
}
