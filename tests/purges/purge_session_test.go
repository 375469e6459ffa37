package purges

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// wide returns a text as UTF-16, little-endian.
func wide(s string) (b []byte) {
	for _, c := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return b
}

// A session with secrets in every version, in metadata, in embeddings and in an assembly, among memories
// of others. One purge removes all of them: nothing is found afterwards in log, archive, files, index,
// vectors and words, nor in a backup made since, plain, as UTF-16, as bytes of numbers, or compressed.
// Then each is brought back in all possible ways: only those that docs/howto/secrets.md names succeed.
func TestPurgeSession(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), t.TempDir()
	dir, old := filepath.Join(root, "s"), filepath.Join(root, "old")
	n := 1000
	if proofs.Everyday() {
		n = 40
	} else if !proofs.Long() {
		n = 200
	}
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 3))
	secret := func() string {
		b := make([]byte, 40)
		for i := range b {
			b[i] = byte('a' + rng.IntN(26))
		}
		return string(b)
	}
	st, err := varve.Open(ctx, dir, &varve.Options{SegmentSize: 64 << 10, NoBackground: true})
	fixture.Must(t, err)
	s := &secrets{parts: map[string][]byte{}}
	texts := map[string]string{} // of the newest version, by id
	for i := range n {
		id := fmt.Sprintf("leak-%04d", i)
		s.add("id "+id, []byte(id))
		for version := range 1 + i%3 {
			text, meta := secret(), secret()
			vector := make([]float32, 8)
			var raw []byte
			for j := range vector {
				vector[j] = rng.Float32()
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(vector[j]))
			}
			what := fmt.Sprintf("%s, version %d", id, version)
			s.add(what, []byte(text[:24]))
			s.add(what+", its end", []byte(text[16:]))
			s.add(what+", as UTF-16", wide(text)[:40])
			s.add(what+", metadata", []byte(meta[:24]))
			s.add(what+", vector", raw[:16])
			texts[id] = text + strings.Repeat(" and what belongs to it", i%90)
			_, err := st.Put(ctx, varve.Memory{ID: id, Content: texts[id], Embedding: vector,
				Metadata: map[string]any{"session_id": "leaky", "note": meta}})
			fixture.Must(t, err)
		}
		_, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("other", i%50), Content: fmt.Sprint("harmless ", i),
			Metadata: map[string]any{"session_id": "tight"}})
		fixture.Must(t, err)
		if i%(n/4) == 0 {
			fixture.Must(t, st.Flush(ctx))
		}
	}
	_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: "g", Name: "g", MemoryIDs: []string{"leak-0001", "other1"}})
	fixture.Must(t, err)
	fixture.Must(t, st.Delete(ctx, "leak-0002"))
	_, err = st.Search(ctx, varve.Query{Text: "belongs harmless"}) // makes the words
	fixture.Must(t, err)
	_, err = st.Backup(ctx, old, varve.BackupOptions{})
	fixture.Must(t, err)
	files := map[string][]byte{}
	for id := range texts {
		if b, err := os.ReadFile(filepath.Join(dir, "memories", id+".json")); err == nil {
			files[id] = b
		}
	}
	others := s.others(fixture.Contents(t, st))
	for id := range others {
		if strings.HasPrefix(id, "leak-") {
			delete(others, id)
		}
	}

	plan, err := st.Admin().PlanPurge(ctx, varve.InSession("leaky"))
	fixture.Must(t, err)
	if len(plan.IDs) != n || plan.Deleted != 1 || plan.Bytes == 0 || len(plan.Unread) > 0 {
		t.Fatalf("the plan has %d of %d ids, %d deleted, %v", len(plan.IDs), n, plan.Deleted, plan.Unread)
	}
	report, err := st.Admin().Purge(ctx, plan.IDs...)
	fixture.Must(t, err)
	if len(report.Deleted) != n-1 {
		t.Errorf("%d were deleted", len(report.Deleted))
	}
	fixture.Compare(t, fixture.Contents(t, st), others, true)
	fresh := filepath.Join(root, "fresh")
	_, err = st.Backup(ctx, fresh, varve.BackupOptions{})
	fixture.Must(t, err)
	storetest.AllWell(t, st.Admin().Verify(ctx, varve.VerifyOptions{}))
	fixture.Must(t, st.Close())
	for _, place := range []string{dir, fresh} {
		if left := s.traces(t, vfs.OS(), place); len(left) > 0 {
			t.Errorf("%d traces in %s:\n%s", len(left), place, strings.Join(left[:min(len(left), 10)], "\n"))
		}
	}

	// Back again.
	came := map[string][]string{}
	back := func(way, place string) {
		t.Helper()
		st, err := varve.Open(ctx, place, &varve.Options{NoBackground: true})
		fixture.Must(t, err)
		defer st.Close()
		for id := range texts {
			if _, err := st.Get(ctx, id); !errors.Is(err, varve.ErrNotFound) {
				came[way] = append(came[way], id)
			}
		}
	}
	restore := func(way string, o varve.RestoreOptions) {
		t.Helper()
		to := filepath.Join(root, way)
		_, err := varve.Restore(ctx, old, to, &o)
		fixture.Must(t, err)
		back(way, to)
	}
	restore("restore beside the store", varve.RestoreOptions{Log: dir})
	restore("restore of an older backup alone", varve.RestoreOptions{})
	restore("restore that asks for it", varve.RestoreOptions{Log: dir, WithPurged: true})
	_, err = varve.Restore(ctx, fresh, filepath.Join(root, "r"), nil)
	fixture.Must(t, err)
	back("restore of a newer backup", filepath.Join(root, "r"))

	st, err = varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	for id, text := range texts {
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: text}, varve.RefusePurged())
		if !errors.Is(err, varve.ErrPurged) {
			t.Errorf("an import of %s: %v", id, err)
		}
	}
	names := make([]string, 0, len(files))
	for id, b := range files { // out of the trash, or with git checkout
		putBack(t, dir, id+".json", b)
		names = append(names, id+".json")
	}
	_, err = adopt.NewFiles(storetest.Inner(st).Adopter).Look(ctx, "memories", names)
	fixture.Must(t, err)
	fixture.Must(t, st.Admin().RebuildIndex(ctx))
	fixture.Must(t, st.Close())
	back("files", dir)

	clone := filepath.Join(root, "clone") // of a commit before the purge
	fixture.Must(t, os.MkdirAll(filepath.Join(clone, "memories"), 0o700))
	fixture.Must(t, os.WriteFile(filepath.Join(clone, "config.json"), []byte(`{"varve":1}`), 0o600))
	for id, b := range files {
		putBack(t, clone, id+".json", b)
	}
	back("clone by git", clone)
	want := []string{"clone by git", "restore of an older backup alone", "restore that asks for it"}
	var ways []string
	for way := range came {
		ways = append(ways, way)
	}
	if slices.Sort(ways); !slices.Equal(ways, want) {
		t.Errorf("it came back by %v, want %v", ways, want)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "howto", "secrets.md"))
	fixture.Must(t, err)
	for _, way := range []string{"clone", "older backup", "--with-purged"} {
		if !strings.Contains(string(page), way) {
			t.Errorf("docs/howto/secrets.md does not name %q", way)
		}
	}
}

// A session of very many memories is purged at once, with bounded memory and without a rewrite for each
// memory.
func TestPurgeLargeSession(t *testing.T) {
	proofs.OneGoroutine(t)
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	n := 100_000
	if !proofs.Long() {
		n = 3000
	}
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	defer st.Close()
	session := func(name string, n int) iter.Seq[varve.Memory] {
		return func(yield func(varve.Memory) bool) {
			for i := range n {
				if !yield(varve.Memory{ID: fmt.Sprint(name, "-", i),
					Content:  fmt.Sprintf("what %s says, the %d. time, is long enough to be known again", name, i),
					Metadata: map[string]any{"session_id": name}}) {
					return
				}
			}
		}
	}
	for _, s := range []struct {
		name string
		n    int
	}{{"tight", 100}, {"leaky", n}} {
		_, err := st.PutAll(ctx, session(s.name, s.n))
		fixture.Must(t, err)
	}
	fixture.Must(t, st.Flush(ctx))
	plan, err := st.Admin().PlanPurge(ctx, varve.InSession("leaky"))
	fixture.Must(t, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	report, err := st.Admin().Purge(ctx, plan.IDs...)
	fixture.Must(t, err)
	runtime.ReadMemStats(&after)
	t.Logf("%d memories in %v, %d segments, %d copies, %d MiB of memory from the system", n, time.Since(began),
		report.Segments, report.Copies, (after.Sys-before.Sys)>>20)
	if len(report.Deleted) != n {
		t.Errorf("%d were deleted", len(report.Deleted))
	}
	if grown := (after.Sys - before.Sys) >> 20; grown > 1<<10 {
		t.Errorf("it took %d MiB", grown)
	}
	if count, err := st.Count(ctx); err != nil || count != 100 {
		t.Errorf("%d are left, %v", count, err)
	}
	remembers(t, st, "leaky-0", fmt.Sprint("leaky-", n-1))
}
