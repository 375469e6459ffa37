package varve_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
)

func TestMakeGolden(t *testing.T) {
	name := os.Getenv("VARVE_GOLDEN")
	if name == "" {
		t.Skip("golden stores are made by VARVE_GOLDEN=v1, once")
	}
	into := filepath.Join(fixture.GoldenRoot, name)
	if err := os.MkdirAll(into, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	clock := fixture.Ticking()
	o := func(seed byte) *varve.Options {
		return storetest.In(&varve.Options{
			Clock: clock, NoBackground: true, SegmentSize: 64 << 10,
		}, storetest.Environment{System: vfs.System{SpillBytes: 1, Inline: true, Rand: rand.NewChaCha8([32]byte{seed})}})
	}
	st, err := varve.Open(ctx, dir, o(1))
	if err != nil {
		t.Fatal(err)
	}
	put := func(m varve.Memory) {
		t.Helper()
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	// Long session ids make a base that is not merged in every round.
	session := strings.Repeat("a long session ", 60)
	for i := range 150 {
		put(varve.Memory{ID: fmt.Sprintf("m%03d", i), Content: fmt.Sprint("memory ", i),
			Metadata: map[string]any{"session_id": session, "n": i}})
	}
	put(varve.Memory{ID: "large", Content: strings.Repeat("compressed in the log. ", 400)})
	put(varve.Memory{ID: "Ünïcode / id", Content: "日本語 \u2028 \"quoted\"",
		Metadata: map[string]any{"deep": map[string]any{"list": []any{1, "two", nil, 3.5}}}})
	put(varve.Memory{ID: "vector", Content: "with an embedding", Embedding: []float32{0.25, -1, 3.5}})
	put(varve.Memory{ID: "expires", Content: "in a hundred years", ExpiresAt: time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC)})
	put(varve.Memory{ID: "deleted in the base", Content: "x"})
	if err := errors.Join(st.Delete(ctx, "deleted in the base"), st.Flush(ctx)); err != nil {
		t.Fatal(err)
	}
	put(varve.Memory{ID: "in the delta", Content: "new"})
	put(varve.Memory{ID: "m003", Content: "changed in the delta"})
	if err := st.Delete(ctx, "m004"); err != nil {
		t.Fatal(err)
	}
	for range 3 { // released, and recycled one round later
		put(varve.Memory{ID: "m001", Content: "changed"})
		if err := storetest.Inner(st).Flusher.Flush(ctx, flush.MergeFlush); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "wal", "archive", "*.zst")); len(names) == 0 {
		t.Error("there is no archive")
	}
	for _, f := range []string{"memory_index.json", "memory_index.delta.json"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
	pack(t, dir, filepath.Join(into, "closed"))

	if st, err = varve.Open(ctx, dir, o(2)); err != nil {
		t.Fatal(err)
	}
	put(varve.Memory{ID: "not flushed", Content: "only in the log"})
	b := new(varve.Batch)
	b.Put(varve.Memory{ID: "in a batch", Content: "one"})
	b.Put(varve.Memory{ID: "m005", Content: "two"})
	b.Delete("m006")
	if err := st.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	pack(t, dir, filepath.Join(into, "killed"))
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func pack(t *testing.T, dir, name string) {
	t.Helper()
	f, err := os.Create(name + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, _ := gzip.NewWriterLevel(f, gzip.BestCompression)
	w := tar.NewWriter(z)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		h := &tar.Header{Name: filepath.ToSlash(rel), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(),
			Format: tar.FormatPAX, Typeflag: tar.TypeDir}
		if !d.IsDir() {
			h.Typeflag, h.Size = tar.TypeReg, info.Size()
		}
		if err := w.WriteHeader(h); err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	})
	if err := errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(fixture.TextsOf(t, dir), "", " ")
	if err == nil {
		err = os.WriteFile(name+".json", append(b, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func goldens(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(fixture.GoldenRoot, "v*", "*.tar.gz"))
	if err != nil || len(list) < 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], ".tar.gz")
	}
	return list
}

// TestGolden verifies that every store that a former program has written is read, verified, written and moved by the
// current one.
func TestGolden(t *testing.T) {
	proofs.OneGoroutine(t)
	ctx := context.Background()
	for _, name := range goldens(t) {
		t.Run(filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name), func(t *testing.T) {
			want := map[string]string{}
			b, err := os.ReadFile(name + ".json")
			if err == nil {
				err = json.Unmarshal(b, &want)
			}
			if err != nil || len(want) < 100 {
				t.Fatal(len(want), err)
			}
			dir := fixture.Unpack(t, name)
			before := fixture.Snapshot(t, dir)
			storetest.SameTexts(t, "read-only", fixture.TextsOf(t, dir), want)
			if !maps.Equal(fixture.Snapshot(t, dir), before) {
				t.Error("reading has changed something")
			}
			fixture.Sound(t, dir)

			st, err := varve.Open(ctx, dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := st.Get(ctx, "m003")
			if err != nil {
				t.Fatal(err)
			}
			versions := 0
			for _, err := range st.History(ctx, "m003") {
				if versions++; err != nil {
					t.Errorf("the past of m003: %v", err)
				}
			}
			if versions != 2 {
				t.Errorf("%d versions of m003", versions)
			}
			if _, err := st.Put(ctx, varve.Memory{ID: "m003", Content: "today"}, varve.IfVersion(m.Version)); err != nil {
				t.Error(err)
			}
			if _, err := st.Put(ctx, varve.Memory{ID: "new", Content: "today"}); err != nil {
				t.Error(err)
			}
			if err := errors.Join(st.Delete(ctx, "large"), st.Close()); err != nil {
				t.Fatal(err)
			}
			want["m003"], want["new"] = "today", "today"
			delete(want, "large")
			storetest.SameTexts(t, "written", fixture.TextsOf(t, dir), want)
			fixture.Sound(t, dir)
			to := filepath.Join(t.TempDir(), "moved")
			if _, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true}); err != nil {
				t.Fatal(err)
			}
			storetest.SameTexts(t, "moved", fixture.TextsOf(t, to), want)
			fixture.Sound(t, to)
		})
	}
}

// checkNoted opens a golden store that has notes on its versions beside it, in name+"."+what+".json". It verifies that
// the store can be opened read-only without changes, and is sound, and has the texts and the notes that it was made
// with. checkNoted returns its folder, the texts and the notes.
func checkNoted(t *testing.T, name, what string,
	notes func(*testing.T, *varve.Store) map[string]string) (dir string, texts, noted map[string]string) {
	t.Helper()
	fixture.Must(t, json.Unmarshal(fixture.ReadBytes(t, name+".json"), &texts))
	fixture.Must(t, json.Unmarshal(fixture.ReadBytes(t, name+"."+what+".json"), &noted))
	if len(texts) < 4 || len(noted) < 12 {
		t.Fatal(len(texts), len(noted))
	}
	dir = fixture.Unpack(t, name)
	before := fixture.Snapshot(t, dir)
	storetest.SameTexts(t, "read-only", fixture.TextsOf(t, dir), texts)
	st, err := varve.Open(t.Context(), dir, &varve.Options{ReadOnly: true})
	fixture.Must(t, err)
	if got := notes(t, st); !maps.Equal(got, noted) {
		t.Errorf("read-only: %v, want %v", got, noted)
	}
	fixture.Must(t, st.Close())
	if !maps.Equal(fixture.Snapshot(t, dir), before) {
		t.Error("reading has changed something")
	}
	fixture.Sound(t, dir)
	return dir, texts, noted
}
