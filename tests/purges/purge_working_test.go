package purges

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/working"
)

// After a purge of a scope no file of the folder has a byte of its content, or of its files that were
// set aside; a scope whose name has the same beginning has all its data.
func TestPurgeWorking(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "s")
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 1))
	st := fixture.Open(t, dir, fixture.SmallLog)
	beside := fixture.Open(t, dir, fixture.SmallLog)
	of, near := working.Scope{Session: "forgotten 1"}, working.Scope{Session: "forgotten 10"}
	s := &secrets{parts: map[string][]byte{}}
	s.add("file", []byte(jsondoc.FileName(of.Key())))
	w, err := st.Working().Open(ctx, of, nil)
	fixture.Must(t, err)
	n, err := beside.Working().Open(ctx, near, nil)
	fixture.Must(t, err)
	path := filepath.Join(dir, "working", jsondoc.FileName(of.Key()))
	for i := range 12 {
		fixture.Must(t, w.Set(ctx, "k", s.text(rng, fmt.Sprint("value ", i), 100+i*700)))
		fixture.Must(t, n.Set(ctx, fmt.Sprint("k", i), strings.Repeat("n", 2000)))
		_, err := w.Append(ctx, s.text(rng, fmt.Sprint("note ", i), 50))
		fixture.Must(t, err)
		if i%3 == 1 {
			_, err := w.Checkpoint(ctx, s.text(rng, fmt.Sprint("checkpoint ", i), 30))
			fixture.Must(t, err)
		}
		if _, err := st.Put(ctx, varve.Memory{ID: "other", Content: strings.Repeat("z", 9000)}); err != nil {
			t.Fatal(err)
		}
		if i == 7 { // a damaged file goes into quarantine
			b, err := os.ReadFile(path)
			fixture.Must(t, err)
			fixture.Must(t, os.WriteFile(path, b[:len(b)/2], 0o600))
		}
		if i%2 == 1 {
			fixture.Must(t, st.Admin().Compact(ctx))
		}
	}
	fixture.Must(t, os.WriteFile(filepath.Join(dir, "working", "copy of it.json"), fixture.ReadBytes(t, path), 0o600))
	fixture.Must(t, w.Set(ctx, "k", s.text(rng, "in the log only", 5000)))
	if len(s.traces(t, vfs.OS(), dir)) < 20 {
		t.Fatal("hardly anything to purge")
	}
	if aside, err := filepath.Glob(filepath.Join(dir, "quarantine", "*")); err != nil || len(aside) == 0 {
		t.Error("nothing was put aside")
	}
	unknown, err := st.Working().Unknown(ctx, of, near, working.Scope{Session: "nobody"})
	if err != nil || len(unknown) != 1 || unknown[0].Session != "nobody" {
		t.Errorf("%v %v", unknown, err)
	}
	r, err := st.Working().Purge(ctx, of)
	if err != nil || len(r.Deleted) != 1 || r.Frames == 0 {
		t.Fatalf("%+v %v", r, err)
	}
	if found := s.traces(t, vfs.OS(), dir); len(found) > 0 {
		t.Errorf("still there: %s", strings.Join(found, "\n"))
	}
	fixture.Sound(t, dir)
	if _, found, err := w.Get(ctx, "k"); found || err != nil {
		t.Errorf("%v %v", found, err)
	}
	if all, err := n.All(ctx); err != nil || len(all) != 12 {
		t.Errorf("the other one has %d values, %v", len(all), err)
	}
	// Nothing is left to be purged; the name can be used again.
	if _, err := st.Working().Purge(ctx, of); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	if _, err := st.Working().Purge(ctx, working.Scope{Session: "nobody"}); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
	fixture.Must(t, w.Set(ctx, "k", "new"))
	fixture.Must(t, st.Admin().Compact(ctx))
	if v, found, err := w.Get(ctx, "k"); !found || err != nil || v != "new" {
		t.Errorf("%v %v %v", v, found, err)
	}
	fixture.Sound(t, dir)
}

// A memory that was made from working memory is purged with its source; a scope that still has the text
// is named.
func TestPurgeConsolidated(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "s")
	rng := rand.New(rand.NewPCG(7, 1))
	st := fixture.Open(t, dir, fixture.SmallLog)
	s := &secrets{parts: map[string][]byte{}}
	of := working.Scope{Session: "gone"}
	w, err := st.Working().Open(ctx, of, nil)
	fixture.Must(t, err)
	text := s.text(rng, "value", 300)
	fixture.Must(t, w.Set(ctx, "k", text))
	fixture.Must(t, w.Set(ctx, "small", 1))
	all, err := st.Working().Consolidate(ctx, of, varve.Consolidation{Values: []string{"k"}})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	kept, err := st.Working().Open(ctx, working.Scope{Session: "kept"}, nil)
	fixture.Must(t, err)
	fixture.Must(t, kept.Set(ctx, "copy", "he said: "+text))
	r, err := st.Admin().Purge(ctx, all[0].ID)
	fixture.Must(t, err)
	if len(r.Mentions) != 1 || r.Mentions[0].Path != "working/"+jsondoc.FileName("session:kept") {
		t.Errorf("%+v", r.Mentions)
	}
	if v, _, err := kept.Get(ctx, "copy"); v != "he said: "+text || err != nil {
		t.Error("the other scope lost it", err)
	}
	fixture.Must(t, kept.Set(ctx, "copy", "x"))
	fixture.Must(t, st.Admin().Compact(ctx))
	if _, err := st.Working().Purge(ctx, working.Scope{Session: "kept"}); err != nil {
		t.Error(err)
	}
	if found := s.traces(t, vfs.OS(), dir); len(found) > 0 {
		t.Errorf("still there: %s", strings.Join(found, "\n"))
	}
	fixture.Sound(t, dir)
}
