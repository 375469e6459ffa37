package metrics

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varve-db/varve"
)

// TestCopyMetrics: the metrics of a copy are missing for a store without a copy. For a copy to which no process sends,
// they tell how far it is behind, and that sending fails.
func TestCopyMetrics(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	st, err := varve.Open(ctx, filepath.Join(dir, "store"), &varve.Options{NoBackground: true,
		StateDir: filepath.Join(dir, "state")})
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	defer st.Close()
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
	check(os.RemoveAll(filepath.Join(dir, "copy")))
}
