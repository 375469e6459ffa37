package embeddings

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/embedding"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/repair"
)

// newer is another model of the same dimension.
func newer(texts []string) ([][]float32, error) {
	var list [][]float32
	for _, text := range texts {
		v := fixture.EmbeddingOf(text)
		slices.Reverse(v)
		list = append(list, v)
	}
	return list, nil
}

func newerOf(text string) []float32 {
	list, _ := newer([]string{text})
	return list[0]
}

// reembedStore makes a store with ten memories with vectors of the older model, one without a content
// and one that no embedder has seen.
func reembedStore(t *testing.T, dir string) (*varve.Store, *fixture.Embedder) {
	t.Helper()
	ctx := context.Background()
	e := &fixture.Embedder{}
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "newer", EmbedBatch: 2})
	for i := range 10 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text e", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "zblank", Embedding: []float32{5, 5, 5}}); err != nil {
		t.Fatal(err)
	}
	e.Set(newer)
	e.Asked()
	return st, e
}

func checkReembedded(t *testing.T, st *varve.Store) {
	t.Helper()
	for m, err := range st.Memories(context.Background()) {
		want := newerOf(m.Content)
		if m.ID == "zblank" {
			want = []float32{5, 5, 5}
		}
		if err != nil || !slices.Equal(m.Embedding, want) {
			t.Errorf("%s %q has %v, want %v, %v", m.ID, m.Content, m.Embedding, want, err)
		}
	}
	if names, err := os.ReadDir(filepath.Join(storetest.Inner(st).Engine.Env().Dir,
		"vector_index")); err != nil || slices.ContainsFunc(names,
		func(e os.DirEntry) bool { return e.Name() == "reembed" }) {
		t.Errorf("the vectors that were computed are still there: %v, %v", names, err)
	}
}

func TestReembed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, e := reembedStore(t, t.TempDir())
	computing := true
	e.Set(func(texts []string) ([][]float32, error) {
		m, err := st.Get(ctx, "m0")
		if computing && (err != nil || !slices.Equal(m.Embedding, fixture.EmbeddingOf(m.Content))) {
			t.Errorf("the old vectors do not serve until the new ones are there: %v, %v", m.Embedding, err)
		}
		if slices.Contains(texts, "text e9") { // the last of them: then one memory is changed, and one deleted
			err := st.Delete(ctx, "m2")
			if err == nil {
				_, err = st.Put(ctx, varve.Memory{ID: "m1", Content: "changed", Embedding: []float32{1, 1, 1}})
			}
			if err != nil {
				t.Error(err)
			}
			if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); !errors.Is(err, varve.ErrLocked) {
				t.Error("a second one:", err)
			}
		}
		return newer(texts)
	})
	var last varve.ReembedReport
	r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		last, computing = r, r.Written == 0
	}})
	if want := (varve.ReembedReport{Total: 11, Computed: 10, Written: 9, Changed: 1}); err != nil ||
		!reflect.DeepEqual(*r, want) || last.Written != 9 {
		t.Fatalf("%+v, last %+v, %v", r, last, err)
	}
	checkReembedded(t, st)
	e.Set(newer)
	if r, err = st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil || r.Written != 0 || r.Computed != 9 {
		t.Errorf("again: %+v, %v", r, err)
	}
}

// Wherever a run ends, the next one continues from the complete part.
func TestReembedGoesOn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, e := reembedStore(t, t.TempDir())
	calls := 0
	stop := errors.New("no more")
	e.Set(func(texts []string) ([][]float32, error) {
		if calls++; calls > 3 {
			return nil, stop
		}
		return newer(texts)
	})
	if r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); !errors.Is(err,
		stop) || r.Computed != 6 || r.Written != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	path := filepath.Join(storetest.Inner(st).Engine.Env().Dir, "vector_index", "reembed")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	record := (len(whole) - vectors.ComputedHead - int(binary.LittleEndian.Uint32(whole))) / 6
	for cut := range len(whole) + 1 { // killed in the middle of an append
		if err := os.WriteFile(path, append(slices.Clone(whole[:cut]), "rest of something"[:cut%17]...), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := storetest.Inner(st).Vectors.OpenComputed("newer", false)
		if err != nil {
			t.Fatal(cut, err)
		}
		if want := max(0, (cut-(len(whole)-6*record))/record); int(c.Count) != want ||
			want > 0 && c.Last != fmt.Sprint("m", want-1) {
			t.Fatalf("cut at %d: %d are left, the last %q, want %d", cut, c.Count, c.Last, want)
		}
		if err := c.F.Close(); err != nil {
			t.Fatal(err)
		}
	}
	flipped := slices.Clone(whole)
	flipped[len(whole)-3*record+20] ^= 1
	if err := os.WriteFile(path, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	e.Set(newer)
	e.Asked()
	ended, end := context.WithCancel(ctx)
	r, err := st.Vectors().Reembed(ended, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Written > 0 {
			end() // in the middle of the second half
		}
	}})
	if !errors.Is(err, context.Canceled) || r.Resumed != 3 || r.Computed != 7 || r.Written == 0 || r.Written == 10 {
		t.Fatalf("%+v, %v", r, err)
	}
	written := r.Written
	e.Asked()
	if r, err = st.Vectors().Reembed(ctx,
		varve.ReembedOptions{}); err != nil || r.Resumed != 10 || r.Computed != 0 || r.Written != 10-written ||
		len(e.Asked()) != 0 {
		t.Fatalf("%+v after %d, %v", r, written, err)
	}
	checkReembedded(t, st)
}

// Vectors that another model has computed, or that are no longer wanted, are not used.
func TestReembedAnew(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, e := reembedStore(t, t.TempDir())
	half := func() {
		t.Helper()
		calls := 0
		e.Set(func(texts []string) ([][]float32, error) {
			if calls++; calls > 2 {
				return nil, errors.New("no more")
			}
			return newer(texts)
		})
		if r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err == nil || r.Computed != 4 {
			t.Fatal(r, err)
		}
		e.Set(newer)
	}
	half()
	if r, err := st.Vectors().Reembed(ctx,
		varve.ReembedOptions{Restart: true}); err != nil || r.Resumed != 0 || r.Computed != 10 {
		t.Fatal(r, err)
	}
	half()
	storetest.Inner(st).Embedding.Tune().Model = "another"
	if r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil || r.Resumed != 0 || r.Computed != 10 {
		t.Fatal(r, err)
	}
	checkReembedded(t, st)
	half()
	if _, err := st.Admin().Purge(ctx, "m0"); err != nil { // its id is among the computed ones
		t.Fatal(err)
	}
	if r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil || r.Resumed != 0 || r.Computed != 9 {
		t.Fatal(r, err)
	}
	purge := true
	e.Set(func(texts []string) ([][]float32, error) {
		if purge && slices.Contains(texts, "text e7") { // in the middle, when it is written to
			purge = false
			if _, err := st.Admin().Purge(ctx, "m3"); err != nil {
				t.Error(err)
			}
		}
		return newer(texts)
	})
	storetest.Inner(st).Embedding.Tune().Model = "a third"
	if r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil || r.Resumed != 0 || r.Computed != 8 {
		t.Fatal(r, err)
	}
	checkReembedded(t, st)
}

// What a purge that was killed after the switch has left of the previous file is removed by the next
// purge, even if the switch has ended since.
func TestPurgeTakesComputedOld(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, _ := reembedStore(t, t.TempDir())
	if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
		t.Fatal(err)
	}
	old := storetest.Inner(st).Vectors.ComputedPath(vectors.ComputedOld)
	if err := os.WriteFile(old, []byte("m0 and its vector"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Admin().Purge(ctx, "m0"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(old); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%q is still there: %v", b, err)
	}
}

// A text that the embedder refuses is left without a vector and named; it delays nothing else. The next
// run asks for it again, and a changed content is asked for at once.
func TestReembedLeavesWhatIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, batch := range []int{1, 2, 64} {
		for _, bad := range [][]string{{"m0"}, {"m6"}, {"m9"}, {"m0", "m9"}, {"m2", "m3", "m4"}} {
			what := fmt.Sprint(bad, " by ", batch)
			st, e := reembedStore(t, t.TempDir())
			storetest.Inner(st).Embedding.Tune().Batch = batch
			stop := errors.New("too long")
			refuses := func(texts []string) ([][]float32, error) {
				if slices.ContainsFunc(texts, func(text string) bool {
					return slices.Contains(bad, "m"+strings.TrimPrefix(text, "text e"))
				}) {
					return nil, stop
				}
				return newer(texts)
			}
			e.Set(refuses)
			storetest.Inner(st).Embedding.Tune().Model = "another"
			if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "a", MemoryIDs: []string{"m0", "m1", "m9"}}); err != nil {
				t.Fatal(err)
			}
			r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{})
			if err != nil || r.Refused != int64(len(bad)) || int(r.Computed) != 10-len(bad) || int(r.Written) != 10-len(bad) {
				t.Fatalf("%s: %+v, %v", what, r, err)
			}
			for i, f := range r.Refusals {
				if f.ID != bad[i] || !errors.Is(f.Err, stop) {
					t.Errorf("%s: named is %+v", what, f)
				}
			}
			check := func(bad []string) {
				t.Helper()
				for m, err := range st.Memories(ctx) {
					want := newerOf(m.Content)
					if m.ID == "zblank" {
						want = []float32{5, 5, 5}
					}
					if slices.Contains(bad, m.ID) {
						want = nil
					}
					if err != nil || !slices.Equal(m.Embedding, want) {
						t.Errorf("%s: %s has %v, want %v, %v", what, m.ID, m.Embedding, want, err)
					}
				}
				if r, err := storetest.CheckVectors(ctx, st); err != nil || r.Drift() != 0 || int(r.Vectors) != 11-len(bad) {
					t.Errorf("%s: %+v, %v", what, r, err)
				}
			}
			check(bad)
			if s := st.Admin().Stats(); s.Switching || s.NextModel != "" || s.Model != "another" {
				t.Errorf("%s: %+v", what, s)
			}
			if d, err := st.Vectors().Drift(ctx); err != nil {
				t.Error(d, err)
			}
			named := ""
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
				if err != nil || f.Severity > varve.SeverityInfo {
					t.Errorf("%s: verify: %s, %v", what, f.String(), err)
				}
				if f.Kind == repair.EmbeddingsPending {
					named = f.Err.Error()
				}
			}
			if !strings.Contains(named, fmt.Sprintf("%q", bad[0])) || !strings.Contains(named, fmt.Sprint(len(bad))) {
				t.Errorf("%s: verify says %q", what, named)
			}
			// Another content is embedded at once; the next run asks for the others.
			if _, err := st.Put(ctx, varve.Memory{ID: bad[0], Content: "shorter"}); err != nil {
				t.Fatal(err)
			}
			check(bad[1:])
			e.Set(newer)
			if r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil || r.Refused != 0 {
				t.Fatal(r, err)
			}
			check(nil)
		}
	}
}

// An embedder that fails for every text is not one that refuses texts: nothing is changed, and the next
// run continues.
func TestReembedAnswersNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, e := reembedStore(t, t.TempDir())
	storetest.Inner(st).Embedding.Tune().Model = "another"
	stop := errors.New("down")
	for n := range 12 { // it fails after so many calls
		calls := 0
		e.Set(func(texts []string) ([][]float32, error) {
			if calls++; calls > n {
				return nil, stop
			}
			return newer(texts)
		})
		r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Restart: true})
		if n < 5 && !errors.Is(err, stop) || r.Refused != 0 {
			t.Fatalf("%d calls: %+v, %v", n, r, err)
		}
	}
	e.Set(func(texts []string) ([][]float32, error) { // it accepts other texts, but none of these
		if texts[0] == embedding.ProbeText {
			return newer(texts)
		}
		return nil, stop
	})
	storetest.Inner(st).Embedding.Tune().Model = "a third"
	r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{})
	if !errors.Is(err, stop) || r.Refused != 10 || st.Admin().Stats().Model == "a third" {
		t.Fatalf("%+v, %v, %+v", r, err, st.Admin().Stats())
	}
	e.Set(newer)
	if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
		t.Fatal(err)
	}
	checkReembedded(t, st)
}

// If no memory has a content, the model is changed nevertheless, and, if there is no vector, the
// dimension.
func TestReembedNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, blank := range []bool{false, true} {
		e := &fixture.Embedder{}
		e.Set(fixture.AnswerBy(fixture.ModelOf("old", 3)))
		dir := t.TempDir()
		st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "old"})
		if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "x"}); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil { // config.json sets the dimension
			t.Fatal(err)
		}
		if err := st.Delete(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if blank {
			if _, err := st.Put(ctx, varve.Memory{ID: "blank", Embedding: []float32{5, 5, 5}}); err != nil {
				t.Fatal(err)
			}
		}
		dims := 4
		if blank {
			dims = 3
		}
		is := fixture.ModelOf("new", dims)
		e.Set(fixture.AnswerBy(is))
		st = fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new"})
		if r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil || r.Written != 0 {
			t.Fatal(r, err)
		}
		if s := st.Admin().Stats(); s.Model != "new" || s.NextModel != "" || s.Switching {
			t.Errorf("%+v", s)
		}
		m, err := st.Put(ctx, varve.Memory{ID: "b", Content: "y"})
		if err != nil || !slices.Equal(m.Embedding, is("y")) {
			t.Error(m, err)
		}
		if v := storetest.Inner(st).Engine.Settings().Now().VectorsModel(); v != "new" {
			t.Errorf("config.json says %q", v)
		}
	}
}

// A memory without an embedding is counted once, even if its file is examined again.
func TestVerifyCountsPendingOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	e := &fixture.Embedder{}
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "old"})
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	e.Set(func([]string) ([][]float32, error) { return nil, errors.New("down") })
	if _, err := st.Put(ctx, varve.Memory{ID: "b", Content: "y"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "memories", "b.json")
	if err := os.Chtimes(file, time.Time{}, time.Unix(1_700_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	said := ""
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == repair.EmbeddingsPending {
			said += f.Err.Error()
		}
	}
	if !strings.Contains(said, "no embedding: 1 (") {
		t.Errorf("verify says %q", said)
	}
}

// A purge during a change of the model removes what was computed for the memory, and reports success.
func TestPurgeAmidSwitch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, _ := reembedStore(t, t.TempDir())
	purged := false
	_, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Written > 0 && !purged {
			purged = true
			if _, err := st.Admin().Purge(ctx, "m9"); err != nil {
				t.Error(err)
			}
			if b,
				err := os.ReadFile(storetest.Inner(st).Vectors.ComputedPath(vectors.ComputedName)); err != nil ||
				bytes.Contains(b, []byte("m9")) || !bytes.Contains(b, []byte("m8")) {
				t.Errorf("what was computed: %v", err)
			}
		}
	}})
	if err != nil || !purged {
		t.Fatal(err, purged)
	}
	checkReembedded(t, st)
}
