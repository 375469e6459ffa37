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

// The golden stores with writers, testdata/golden/writers, are made with
//
//	VARVE_GOLDEN=writers go test . -run '^TestMakeGoldenWriters$'
//
// like those of goldenRoot: once, and never again.
var goldenWriters = filepath.Join(fixture.GoldenRoot, "writers")

// goldenNames returns the writers and causes of the versions of the memories of such a store, by "id version".
func goldenNames(t *testing.T, st *varve.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, id := range []string{"by none", "m0", "m1", "m2", "gone", "expired", "not flushed"} {
		n := 0
		for v, err := range st.History(context.Background(), id) {
			if errors.Is(err, varve.ErrNotFound) {
				break
			}
			if n++; err != nil {
				t.Errorf("%s: %v", id, err)
			}
			name := varve.UnknownWriter
			if v.Writer.Since != 0 {
				name = v.Writer.String()
			}
			all[fmt.Sprint(id, " ", n)] = strings.TrimSpace(name + " " + v.Cause)
		}
	}
	return all
}

func TestMakeGoldenWriters(t *testing.T) {
	if os.Getenv("VARVE_GOLDEN") != "writers" {
		t.Skip("the golden stores with writers are made by VARVE_GOLDEN=writers, once")
	}
	fixture.Must(t, os.MkdirAll(goldenWriters, 0o755))
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	clock := fixture.ClockAt(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	o := func(seed byte, w *varve.Writer) *varve.Options {
		system := vfs.System{SpillBytes: 1, Inline: true, Rand: rand.NewChaCha8([32]byte{seed})}
		return storetest.In(&varve.Options{Clock: clock.Now, NoBackground: true, SegmentSize: 64 << 10, Writer: w},
			storetest.Environment{System: system})
	}
	described := func(agent string) *varve.Writer {
		return &varve.Writer{Program: "golden", Host: "made-here", PID: 7, Agent: agent, Session: "s-" + agent}
	}
	write := func(name string) {
		pack(t, dir, filepath.Join(goldenWriters, name))
		copied := filepath.Join(t.TempDir(), "s")
		fixture.Must(t, os.CopyFS(copied, os.DirFS(dir)))
		st, err := varve.Open(ctx, copied, &varve.Options{NoBackground: true, Clock: clock.Now})
		fixture.Must(t, err)
		b, err := json.MarshalIndent(goldenNames(t, st), "", " ")
		fixture.Must(t, errors.Join(err, st.Close()))
		fixture.Must(t, os.WriteFile(filepath.Join(goldenWriters, name+".writers.json"), append(b, '\n'), 0o644))
	}
	var st *varve.Store
	put := func(ctx context.Context, m varve.Memory) {
		t.Helper()
		clock.Add(time.Minute)
		_, err := st.Put(ctx, m)
		fixture.Must(t, err)
	}
	for seed, w := range []*varve.Writer{nil, described("one"), described("two")} {
		var err error
		st, err = varve.Open(ctx, dir, o(byte(seed+7), w))
		fixture.Must(t, err)
		if w == nil {
			put(ctx, varve.Memory{ID: "by none", Content: "before there were writers"})
			fixture.Must(t, st.Close())
			continue
		}
		client := varve.WithWriter(ctx, varve.Writer{Client: "a client", ClientVersion: "1.2", Token: "laptop"})
		for i := range 6 {
			for j := range 3 {
				ctx := ctx
				if j == 2 {
					ctx = client
				}
				put(ctx, varve.Memory{ID: fmt.Sprint("m", j), Content: fmt.Sprint("version ", i, strings.Repeat(" and more", 400)),
					Embedding: []float32{float32(i), 1, float32(j)}})
			}
			put(ctx, varve.Memory{ID: "gone", Content: "x"})
			clock.Add(time.Minute)
			fixture.Must(t, st.Delete(client, "gone"))
			if i%3 == 1 {
				fixture.Must(t, storetest.Inner(st).Flusher.Flush(ctx, flush.MergeFlush))
			}
		}
		put(ctx, varve.Memory{ID: "expired", Content: "soon", ExpiresAt: clock.Now().Add(2 * time.Minute)})
		for range 3 { // noticed, and deleted an hour later
			clock.Add(time.Hour)
			fixture.Must(t, storetest.Inner(st).Retention.SweepExpired(ctx))
		}
		fixture.Must(t, errors.Join(st.Flush(ctx), st.Close()))
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "wal", "archive", "*.zst")); len(names) == 0 {
		t.Error("there is no archive")
	}
	write("closed")
	st, err := varve.Open(ctx, dir, o(10, described("three")))
	fixture.Must(t, err)
	put(ctx, varve.Memory{ID: "not flushed", Content: "only in the log"})
	b := new(varve.Batch)
	b.Put(varve.Memory{ID: "m0", Content: "in a batch"})
	b.Put(varve.Memory{ID: "m1", Content: "in a batch"})
	clock.Add(time.Minute)
	fixture.Must(t, st.Apply(ctx, b))
	write("killed")
	fixture.Must(t, st.Close())
}

// TestGoldenWriters verifies that a store with writers, written by a former program, is read, verified and written by
// the current one, which names the writers that wrote it.
func TestGoldenWriters(t *testing.T) {
	proofs.OneGoroutine(t)
	ctx := context.Background()
	for _, name := range []string{"closed", "killed"} {
		name = filepath.Join(goldenWriters, name)
		t.Run(filepath.Base(name), func(t *testing.T) {
			dir, want, writers := checkNoted(t, name, "writers", goldenNames)
			st, err := varve.Open(ctx, dir, &varve.Options{Writer: &varve.Writer{Program: "test", Agent: "of today"}})
			fixture.Must(t, err)
			if f := storetest.Inner(st).Engine.Log().Features(); f&wal.FeatureWriters == 0 {
				t.Errorf("features %s", f)
			}
			_, err = st.Put(ctx, varve.Memory{ID: "new", Content: "today"})
			fixture.Must(t, err)
			if got := goldenNames(t, st); !maps.Equal(got, writers) {
				t.Errorf("%v, want %v", got, writers)
			}
			if got := fixture.IdsBy(t, st, "of today"); len(got) != 1 || got[0] != "new" {
				t.Errorf("the memories by the writer of today are %v", got)
			}
			if all, err := st.Admin().Writers(ctx); err != nil || len(all) < 4 || all[len(all)-1].Number != uint32(len(all)) {
				t.Errorf("%v, %v", all, err)
			}
			fixture.Must(t, st.Close())
			want["new"] = "today"
			storetest.SameTexts(t, "written", fixture.TextsOf(t, dir), want)
			fixture.Sound(t, dir)
		})
	}
}
