package varve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// The golden stores of frames with fields, testdata/golden/fields, are made with
//
//	VARVE_GOLDEN=fields go test . -run '^TestMakeGoldenFields$'
//
// like those of goldenRoot: once, and never again.
var goldenFields = filepath.Join(fixture.GoldenRoot, "fields")

// goldenTimes returns the times of the versions of the memories of such a store, by "id version".
func goldenTimes(t *testing.T, st *varve.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, id := range []string{"ahead", "m0", "m1", "m2", "gone", "not flushed"} {
		n := 0
		for v, err := range st.History(context.Background(), id) {
			if errors.Is(err, varve.ErrNotFound) {
				break
			}
			if n++; err != nil {
				t.Errorf("%s: %v", id, err)
			}
			all[fmt.Sprint(id, " ", n)] = v.Time.Format(time.RFC3339Nano)
		}
	}
	return all
}

func TestMakeGoldenFields(t *testing.T) {
	if os.Getenv("VARVE_GOLDEN") != "fields" {
		t.Skip("the golden stores of frames with fields are made by VARVE_GOLDEN=fields, once")
	}
	fixture.Must(t, os.MkdirAll(goldenFields, 0o755))
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	clock := fixture.ClockAt(time.Date(2036, 5, 1, 12, 0, 0, 0, time.UTC))
	o := func(seed byte) *varve.Options {
		return storetest.In(&varve.Options{Clock: clock.Now, NoBackground: true, SegmentSize: 64 << 10},
			storetest.Environment{System: vfs.System{SpillBytes: 1, Inline: true, Rand: rand.NewChaCha8([32]byte{seed})}})
	}
	write := func(name string) {
		pack(t, dir, filepath.Join(goldenFields, name))
		copied := filepath.Join(t.TempDir(), "s")
		fixture.Must(t, os.CopyFS(copied, os.DirFS(dir)))
		st, err := varve.Open(ctx, copied, &varve.Options{NoBackground: true})
		fixture.Must(t, err)
		b, err := json.MarshalIndent(goldenTimes(t, st), "", " ")
		fixture.Must(t, errors.Join(err, st.Close(),
			os.WriteFile(filepath.Join(goldenFields, name+".times.json"), append(b, '\n'), 0o644)))
	}
	st, err := varve.Open(ctx, dir, o(5))
	fixture.Must(t, err)
	put := func(m varve.Memory) {
		t.Helper()
		clock.Add(time.Minute)
		_, err := st.Put(ctx, m)
		fixture.Must(t, err)
	}
	put(varve.Memory{ID: "ahead", Content: "with the clock ten years ahead"})
	clock.Add(-10 * 365 * 24 * time.Hour)
	for i := range 12 {
		for j := range 3 {
			put(varve.Memory{ID: fmt.Sprint("m", j), Content: fmt.Sprint("version ", i, strings.Repeat(" and more", 400)),
				Embedding: []float32{float32(i), 1, float32(j)}})
		}
		put(varve.Memory{ID: "gone", Content: "x"})
		clock.Add(time.Minute)
		fixture.Must(t, st.Delete(ctx, "gone"))
		if i%3 == 1 {
			fixture.Must(t, storetest.Inner(st).Flusher.Flush(ctx, flush.MergeFlush))
		}
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "wal", "archive", "*.zst")); len(names) == 0 {
		t.Error("there is no archive")
	}
	fixture.Must(t, errors.Join(st.Flush(ctx), st.Close()))
	write("closed")
	st, err = varve.Open(ctx, dir, o(6))
	fixture.Must(t, err)
	put(varve.Memory{ID: "not flushed", Content: "only in the log"})
	b := new(varve.Batch)
	b.Put(varve.Memory{ID: "m0", Content: "in a batch"})
	b.Put(varve.Memory{ID: "m1", Content: "in a batch"})
	clock.Add(time.Minute)
	fixture.Must(t, st.Apply(ctx, b))
	write("killed")
	fixture.Must(t, st.Close())
}

// TestGoldenFields verifies that a store whose frames have fields, written by a former program, is read, verified and
// written by the current one, and that its history has the times at which it was written.
func TestGoldenFields(t *testing.T) {
	proofs.OneGoroutine(t)
	ctx := context.Background()
	for _, name := range []string{"closed", "killed"} {
		name = filepath.Join(goldenFields, name)
		t.Run(filepath.Base(name), func(t *testing.T) {
			dir, want, times := checkNoted(t, name, "times", goldenTimes)
			st, err := varve.Open(ctx, dir, nil)
			fixture.Must(t, err)
			if f := storetest.Inner(st).Engine.Log().Features(); f&wal.FeatureFields == 0 {
				t.Errorf("features %s", f)
			}
			now := time.Now()
			_, err = st.Put(ctx, varve.Memory{ID: "new", Content: "today"})
			fixture.Must(t, err)
			if got := goldenTimes(t, st); !maps.Equal(got, times) {
				t.Errorf("%v, want %v", got, times)
			}
			for v, err := range st.History(ctx, "new") {
				if err != nil || v.Time.Before(now.Add(-time.Second)) || v.Time.After(time.Now().Add(time.Second)) {
					t.Errorf("put at %s, history says %s, %v", now, v.Time, err)
				}
			}
			fixture.Must(t, st.Close())
			want["new"] = "today"
			storetest.SameTexts(t, "written", fixture.TextsOf(t, dir), want)
			fixture.Sound(t, dir)
		})
	}
}
