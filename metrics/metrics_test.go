package metrics

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/varve-db/varve"
)

// The numbers are those of the store, and what is done to it is counted.
func TestCollector(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st, err := varve.Open(ctx, filepath.Join(t.TempDir(), "s"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, id := range []string{"a", "b", "c"} {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "text of " + id}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Delete(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(ctx, "none"); err == nil {
		t.Fatal("a missing memory was deleted")
	}
	for range 100 {
		if _, err := st.Get(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(New(func() *varve.Store { return st }))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = value(m)
		}
	}
	for name, want := range map[string]float64{
		"varve_memories": 2, "varve_assemblies": 0, "varve_operations_total put ok": 3,
		"varve_operations_total delete ok": 1, "varve_operations_total delete error": 1,
		"varve_operations_total get ok": 100, "varve_operation_duration_seconds put": 3, "varve_healthy": 1,
		"varve_writable": 1, "varve_problems": 0, "varve_backlog_bytes": 0, "varve_quarantined_files": 0,
		"varve_flush_duration_seconds": 1, "varve_backup_last_success_timestamp_seconds": 0,
	} {
		if have, ok := got[name]; !ok || have != want {
			t.Errorf("%s is %v (%t), want %v", name, have, ok, want)
		}
	}
	for _, name := range []string{"varve_fsync_duration_seconds", "varve_disk_free_bytes", "varve_store_bytes index"} {
		if got[name] <= 0 || math.IsNaN(got[name]) {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

// value is that of a number, or the count of a histogram.
func value(m *dto.Metric) float64 {
	switch {
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	}
	return math.NaN()
}
