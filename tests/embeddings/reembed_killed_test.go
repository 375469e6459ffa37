package embeddings

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

// reembedChild re-embeds everything with a model, and prints a line when it is done. Its embedder is
// slow enough to be killed in the middle.
func reembedChild(ctx context.Context, arg, dir string) error {
	var model string
	var dim int
	if _, err := fmt.Sscanf(strings.ReplaceAll(arg, ":", " "), "%s %d", &model, &dim); err != nil {
		return err
	}
	of := fixture.ModelOf(model, dim)
	o := fixture.BusyOptions()
	o.EmbedModel, o.EmbedBatch = model, 8
	o.Embed = func(_ context.Context, texts []string) ([][]float32, error) {
		time.Sleep(time.Millisecond)
		return fixture.AnswerBy(of)(texts)
	}
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		return err
	}
	_, err = st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Written > 0 {
			time.Sleep(time.Millisecond)
		}
	}})
	if err = errors.Join(err, st.Close()); err == nil {
		fmt.Println("done")
	}
	return err
}

// TestReembedKilled kills a re-embedding with SIGKILL again and again, while this process puts, edits
// and deletes; all acknowledged writes are there in the end, all with vectors of the new model.
//
//	VARVE_REPEAT=50 go test -run TestReembedKilled ./tests/embeddings
func TestReembedKilled(t *testing.T) {
	t.Parallel()
	for round := range storetest.Repeat(t, 4) {
		seed := proofs.Seed(t, 0) + uint64(round)
		if s := os.Getenv("VARVE_SEED"); s != "" {
			if _, err := fmt.Sscan(s, &seed); err != nil {
				t.Fatal(err)
			}
		}
		if reembedKilled(t, seed); t.Failed() {
			t.Fatalf("VARVE_SEED=%d VARVE_REPEAT=1 go test -run TestReembedKilled ./tests/embeddings", seed)
		}
	}
}

func reembedKilled(t *testing.T, seed uint64) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	was, dim := fixture.ModelOf("old", 3), 3+rng.IntN(2)
	is := fixture.ModelOf("new", dim)
	o := fixture.BusyOptions()
	o.NoBackground, o.EmbedModel = true, "old"
	o.Embed = func(_ context.Context, texts []string) ([][]float32, error) { return fixture.AnswerBy(was)(texts) }
	st := fixture.Open(t, dir, o)
	acked := map[string]string{} // contents, beside the store
	put := func(id string) {
		text := fmt.Sprint("text ", id, " ", rng.Uint64())
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: text}); err != nil {
			t.Fatal(err)
		}
		acked[id] = text
	}
	for i := range 150 {
		put(fmt.Sprint("m", i))
	}
	if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "a", MemoryIDs: []string{"m0", "m1", "m2"}}); err != nil {
		t.Fatal(err)
	}
	models := map[string]func(string) []float32{"old": was, "new": is}
	kills, switched := 0, false
	later := 20 * proofs.Every(1) // each kill comes so many milliseconds later than the one before
	for done := false; !done && kills < 200; {
		cmd, out := storetest.Start(t, fmt.Sprintf("reembed:new:%d", dim), dir)
		ended := make(chan string, 1)
		go func() {
			line, _ := out.ReadString('\n')
			ended <- line
		}()
		kill := time.After(time.Duration(rng.IntN(40+later*kills)) * time.Millisecond)
		for running := true; running; {
			select {
			case line := <-ended:
				running, done = false, line == "done\n"
				if !done {
					t.Errorf("it ended with %q", line)
				}
			case <-kill:
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				kills++
				running = false
				<-ended
			default:
			}
			id := fmt.Sprint("m", 3+rng.IntN(170))
			switch rng.IntN(6) {
			case 0:
				put(id)
			case 1:
				if _, err := st.Update(ctx, id,
					func(m *varve.Memory) error { m.AccessCount++; return nil }); err != nil && !errors.Is(err, varve.ErrNotFound) {
					t.Fatal(err)
				}
			case 2:
				if err := st.Delete(ctx, id); err != nil && !errors.Is(err, varve.ErrNotFound) {
					t.Fatal(err)
				}
				delete(acked, id)
			default: // m0 to m2 are not changed: they are found, by the one model or the other
				q := varve.Query{Vector: models["old"](acked["m0"]), Limit: 200}
				hits, err := st.Search(ctx, q)
				if errors.Is(err, varve.ErrDimension) && dim != 3 {
					switched = true
					continue
				}
				for i := range 3 {
					if id := fmt.Sprint("m", i); err != nil ||
						!slices.ContainsFunc(hits, func(h varve.Hit) bool { return h.ID == id }) {
						t.Fatalf("%s is not among %d hits: %v", id, len(hits), err)
					}
				}
				switch score := hits[slices.IndexFunc(hits, func(h varve.Hit) bool { return h.ID == "m0" })].Score; {
				case score < 0.9999:
					switched = true
				case switched:
					t.Fatal("answered by the old model after the new one")
				}
			}
		}
		_ = cmd.Wait()
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	e := &fixture.Embedder{}
	e.Set(fixture.AnswerBy(is))
	st = fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new"})
	if s := st.Admin().Stats(); s.Model != "new" || s.Switching || s.NextModel != "" {
		t.Errorf("%+v", s)
	}
	if _, err := st.Vectors().EmbedPending(ctx); err != nil { // what the old process has put since then
		t.Fatal(err)
	}
	n := 0
	for m, err := range st.Memories(ctx) {
		n++
		if err != nil || acked[m.ID] != m.Content || !slices.Equal(m.Embedding, is(m.Content)) {
			t.Errorf("%s %q %v, acknowledged was %q, %v", m.ID, m.Content, m.Embedding, acked[m.ID], err)
		}
	}
	if n != len(acked) {
		t.Errorf("%d memories, %d were acknowledged", n, len(acked))
	}
	if a, err := st.Assemblies().Get(ctx, "a"); err != nil || len(a.CompositeEmbedding) != dim {
		t.Error(a, err)
	}
	if r, err := storetest.CheckVectors(ctx, st); err != nil || r.Drift() != 0 || len(r.Misfits) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity > 0 {
			t.Errorf("verify: %+v, %v", f, err)
		}
	}
	t.Logf("%d dimensions, killed %d times, %d memories", dim, kills, n)
}
