package words_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
)

// TestSegmentsOfTwoGoroutines: a search that makes the words of many memories itself, by two goroutines, finds the same
// with the same scores as one in the files that a round makes of these memories later.
func TestSegmentsOfTwoGoroutines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	const n = 12_000
	for from := 0; from < n; from += 1000 {
		b := new(varve.Batch)
		for i := from; i < from+1000; i++ {
			b.Put(varve.Memory{ID: fmt.Sprintf("m%05d", i%(n-500)), Timestamp: time.Unix(int64(i), 0),
				Content:  fmt.Sprintf("boat number%d sails to port%d with cargo%d", i, i%97, i%7),
				Metadata: map[string]any{"session_id": fmt.Sprint("s", i/60)}})
		}
		if err := st.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	found := func() (all []varve.Hit) {
		t.Helper()
		for _, q := range []string{"boat", "port13", "port1 cargo3", "number11800 port5", "number499",
			"number3 boat -cargo1"} {
			hits, err := st.Search(t.Context(), varve.Query{Text: q, Limit: 20})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, hits...)
		}
		return all
	}
	first := found()
	if err := st.Admin().RebuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	flush(t, st)
	second := found()
	if len(first) < 50 || len(first) != len(second) {
		t.Fatal(len(first), len(second))
	}
	for i := range first {
		a, b := first[i], second[i]
		if a.ID != b.ID || a.Score != b.Score || !reflect.DeepEqual(a.Memory.Content, b.Memory.Content) {
			t.Errorf("hit %d: %s %v, in the files %s %v", i, a.ID, a.Score, b.ID, b.Score)
		}
	}
}
