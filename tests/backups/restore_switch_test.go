package backups

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// oneModel returns the model of the existing rows, of any memories; "" and the reason if they are of
// more than one. missing are the memories without a row.
func oneModel(t *testing.T, st *varve.Store,
	models map[string]func(string) []float32) (by, why string, missing []string) {
	t.Helper()
	ctx := context.Background()
	view, err := storetest.Inner(st).Vectors.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Release()
	of := map[string][]string{}
	for m, err := range st.Memories(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Content == "" {
			continue
		}
		row, _, has, err := view.Row(nil, vector.Memories, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !has {
			missing = append(missing, m.ID)
			continue
		}
		by := "none"
		for name, vectorOf := range models {
			if bytes.Equal(row, view.Metric().Row(nil, vectorOf(m.Content))) {
				by = name
			}
		}
		of[by] = append(of[by], m.ID)
	}
	for name := range of {
		by = name
	}
	if len(of) != 1 || by == "none" {
		return "", fmt.Sprint(of), missing
	}
	return by, "", missing
}

// A backup that was made during a change of the model is restored to a store that is also in the middle
// of it: no search uses both models, and the change continues, to any model, or is canceled where that
// is possible.
func TestRestoreAmidSwitch(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, dims := range []int{3, 4} {
		for _, at := range []string{"computing", "written", "written more"} {
			t.Run(fmt.Sprint(at, dims), func(t *testing.T) { restoreAmidSwitch(t, at, dims) })
		}
	}
}

func restoreAmidSwitch(t *testing.T, at string, dims int) {
	ctx := context.Background()
	dir := t.TempDir()
	was, is, third := fixture.ModelOf("old", 3), fixture.ModelOf("new", dims), fixture.ModelOf("third", 3)
	models := map[string]func(string) []float32{"old": was, "new": is, "third": third}
	e, older := &fixture.Embedder{}, &fixture.Embedder{}
	older.Set(fixture.AnswerBy(was))
	path := filepath.Join(dir, "s")
	old := fixture.SwitchStore(t, path, older)
	e.Set(fixture.AnswerBy(is))
	open := func(dir, model string) *varve.Store {
		t.Helper()
		return fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: model, EmbedBatch: 2})
	}
	st := open(path, "new")
	ended, end := context.WithCancel(ctx)
	if _, err := st.Vectors().Reembed(ended, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if at == "computing" && r.Computed == 8 || at == "written" && r.Written == 2 ||
			at == "written more" && r.Written == 14 {
			end()
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	serving := "new"
	if at == "computing" {
		serving = "old"
	} else {
		// Its vector is the caller's own, and of the new model.
		if _, err := st.Put(ctx, varve.Memory{ID: "own", Content: "own", Embedding: is("own")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := old.Put(ctx, varve.Memory{ID: "m03", Content: "reworded"}); err != nil { // pending, or by the old one
		t.Fatal(err)
	}
	backup := filepath.Join(dir, "b")
	if _, err := st.Backup(ctx, backup, varve.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := varve.CheckBackup(ctx, backup); err != nil {
		t.Fatal(err)
	}
	restore := func(name string) string {
		t.Helper()
		to := filepath.Join(dir, name)
		if _, err := varve.Restore(ctx, backup, to, nil); err != nil {
			t.Fatal(err)
		}
		return to
	}
	want, _, wantMissing := oneModel(t, st, models)
	check := func(st *varve.Store) {
		t.Helper()
		by, why, missing := oneModel(t, st, models)
		if by != serving || by != want || !slices.Equal(missing, wantMissing) {
			t.Fatalf("it answers by %q, without %q, the store that was backed up by %q, without %q: %s", by, missing, want,
				wantMissing, why)
		}
		if r, err := storetest.CheckVectors(ctx, st); err != nil || r.Drift() != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if hits, err := st.Search(ctx,
			varve.Query{Vector: models[by]("text 7"), Limit: 1}); err != nil || len(hits) != 1 || hits[0].ID != "m07" {
			t.Fatal(hits, err)
		}
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			if err != nil || f.Severity > varve.SeverityInfo {
				t.Errorf("verify: %s, %v", f.String(), err)
			}
		}
	}
	r := restore("r")
	plain := fixture.Open(t, r, &varve.Options{NoBackground: true})
	check(plain)
	if s, o := plain.Admin().Stats(),
		st.Admin().Stats(); s.Switching != o.Switching || s.NextModel != o.NextModel || s.Model != o.Model {
		t.Errorf("restored as %+v, it was %+v", s, o)
	}
	if _, err := plain.Vectors().CancelReembed(ctx); (err == nil) != (serving == "old") || err != nil && !errors.Is(err,
		varve.ErrConflict) {
		t.Fatal(err)
	}
	check(plain)
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}
	for _, next := range []string{"new", "third"} {
		e.Set(fixture.AnswerBy(models[next]))
		e.Asked()
		st := open(restore("r "+next), next)
		rep, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if asked := len(e.Asked()); next == "new" && (rep.Resumed < 8 || asked > 14) {
			t.Errorf("%+v, the embedder was asked %d times", rep, asked)
		}
		if by, why := fixture.ModelServed(t, st, models); by != next {
			t.Fatalf("gone on to %s, it answers by %q: %s", next, by, why)
		}
		a, err := st.Assemblies().Get(ctx, "a")
		if err != nil || len(a.CompositeEmbedding) != len(models[next]("x")) {
			t.Fatal(a, err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// The index is lost as well, then the log too: the first is detected, the second reported.
	r = restore("lost")
	loseIndex(t, r)
	plain = fixture.Open(t, r, &varve.Options{NoBackground: true})
	if by, why, _ := oneModel(t, plain, models); by != serving {
		t.Fatalf("by %q: %s", by, why)
	}
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}
	loseIndex(t, r)
	if err := os.RemoveAll(filepath.Join(r, "wal")); err != nil {
		t.Fatal(err)
	}
	plain = fixture.Open(t, r, &varve.Options{NoBackground: true})
	if plain.Admin().OpenReport().ProblemCount == 0 {
		t.Error("index and log are gone amid the change, and nothing is told")
	}
	// The computed vectors have decayed in the backup: the rest is restored, and the loss named.
	name := filepath.Join(backup, "vector_index", "reembed")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := varve.CheckBackup(ctx, backup); !errors.Is(err, varve.ErrCorrupt) {
		t.Error(err)
	}
	rep, err := varve.Restore(ctx, backup, filepath.Join(dir, "rotten"), nil)
	if err != nil || len(rep.Damaged) != 1 || rep.Damaged[0].In != "vector_index" {
		t.Fatal(rep, err)
	}
	if by, why, _ := oneModel(t, fixture.Open(t, filepath.Join(dir, "rotten"), nil), models); by != serving {
		t.Fatalf("by %q: %s", by, why)
	}
}

func loseIndex(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"memory_index.json", "memory_index.delta.json", "backups", "vector_index/mapping.json",
		"vector_index/memory_vectors.faiss"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// Every moment of a backup in whose log the model was changed, or in the log that continues behind it,
// is restored with the model of that moment.
func TestRestoreMomentsOfSwitch(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, when := range []string{"all", "half", "later"} {
		t.Run(when, func(t *testing.T) { restoreMoments(t, when) })
	}
}

func restoreMoments(t *testing.T, when string) {
	ctx := context.Background()
	dir := t.TempDir()
	was, is := fixture.ModelOf("old", 3), fixture.ModelOf("new", 4)
	models := map[string]func(string) []float32{"old": was, "new": is}
	e, older := &fixture.Embedder{}, &fixture.Embedder{}
	older.Set(fixture.AnswerBy(was))
	path := filepath.Join(dir, "s")
	old := fixture.SwitchStore(t, path, older)
	e.Set(fixture.AnswerBy(is))
	st := fixture.Open(t, path, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new", EmbedBatch: 8})
	reembed := func() {
		t.Helper()
		ended, end := context.WithCancel(ctx)
		_, err := st.Vectors().Reembed(ended, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
			if when == "half" && r.Written > 5 {
				end()
			}
		}})
		if err != nil && (when != "half" || !errors.Is(err, context.Canceled)) {
			t.Fatal(err)
		}
	}
	backup := filepath.Join(dir, "b")
	begun := when == "later"
	info, err := old.Backup(ctx, backup, varve.BackupOptions{Progress: func(done, total int64) {
		if !begun && done == total {
			begun = true
			// In the log, before the change: its vector is by the older model like those of the files.
			if _, err := old.Update(ctx, "m02", func(m *varve.Memory) error { m.AccessCount++; return nil }); err != nil {
				t.Fatal(err)
			}
			reembed()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	o := varve.RestoreOptions{}
	last := info.Last.LSN
	if when == "later" {
		reembed()
		o.Log, last = path, storetest.Inner(st).Engine.Log().Durable()
	}
	var moments []uint64
	said := map[uint64]bool{}
	for e, err := range storetest.Inner(st).Engine.Log().Past().Entries(ctx, wal.Mark{LSN: 0},
		storetest.Inner(st).Engine.Log().Durable()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.LSN >= info.First.LSN && e.LSN <= last {
			moments = append(moments, e.LSN)
			said[e.LSN] = e.Kind == record.KindModel
		}
	}
	steps := map[string]bool{}
	for i, at := range moments {
		if i > 0 && i < len(moments)-1 && !said[at] && i%5 != 0 {
			continue
		}
		to := filepath.Join(dir, fmt.Sprint("r", at))
		o.Version = at
		if _, err := varve.Restore(ctx, backup, to, &o); err != nil {
			t.Fatal(at, err)
		}
		r := fixture.Open(t, to, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new"})
		model := storetest.Inner(r).Vectors.Model()
		serving := "old"
		if model.Since != 0 {
			serving = "new"
		}
		steps[fmt.Sprint(serving, model.Next, model.Done)] = true
		if _,
			err := os.Stat(storetest.Inner(r).Vectors.ComputedPath(vectors.ComputedName)); err == nil && !model.Switching() &&
			model.Next == "" {
			t.Errorf("as of %d nothing was being re-embedded, and there is something that was computed", at)
		}
		by, why, missing := oneModel(t, r, models)
		none := when != "half" && model.Switching() && len(missing) == 20
		if by != serving && !none || !model.Switching() && len(missing) > 0 || when == "half" && len(missing) > 0 {
			t.Fatalf("as of %d it answers by %q, the model is %+v, %q are missing: %s", at, by, model, missing, why)
		}
		config := r.Admin().Config()
		if c := fixture.VectorSettings(config); model.Done && c.Dimension != 4 || model.Since == 0 && c.Dimension == 4 {
			t.Fatalf("as of %d config.json says %+v, the model is %+v", at, c, model)
		}
		if _, err := r.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
			t.Fatal(err)
		}
		if by, why := fixture.ModelServed(t, r, models); by != "new" {
			t.Fatal(why)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want := map[string]int{"all": 4, "half": 3, "later": 4}[when]; len(steps) != want {
		t.Fatalf("of the change there were %v", steps)
	}
}

// A log that begins again because it was damaged during a change of the model leaves the store in the
// middle of that change.
func TestNewLogAmidSwitch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, to := t.TempDir(), t.TempDir()
	was, is := fixture.ModelOf("old", 3), fixture.ModelOf("new", 3)
	models := map[string]func(string) []float32{"old": was, "new": is}
	e, older := &fixture.Embedder{}, &fixture.Embedder{}
	older.Set(fixture.AnswerBy(was))
	e.Set(fixture.AnswerBy(is))
	old := fixture.SwitchStore(t, dir, older)
	if err := old.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new", EmbedBatch: 2})
	ended, end := context.WithCancel(ctx)
	if _, err := st.Vectors().Reembed(ended, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Written == 4 {
			end()
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, id := range []string{"z1", "z2"} {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "SPOIL-ME " + id}); err != nil {
			t.Fatal(err)
		}
	}
	fixture.CopyLive(t, to, dir)
	segments, err := filepath.Glob(filepath.Join(to, "wal", "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	spoiled := 0
	for _, name := range segments {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte("SPOIL-ME z1")); i >= 0 {
			b[i] = 'X'
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			spoiled++
		}
	}
	if spoiled != 1 {
		t.Fatal("the entry is in", spoiled, "segments")
	}
	plan, err := varve.PlanRepair(ctx, to, nil, varve.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	if names, err := filepath.Glob(filepath.Join(to, "vector_index", "m*")); err != nil || len(names) == 0 {
		t.Fatal(names, err)
	} else {
		for _, name := range names { // the vectors have to be rebuilt from index and log
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	st = fixture.Open(t, to, &varve.Options{NoBackground: true})
	if by, why, missing := oneModel(t, st, models); by != "new" || len(missing) > 0 {
		t.Fatalf("by %q, without %q: %s", by, missing, why)
	}
}

// A change of the model that is made while a backup copies the log's end is in none of its moments:
// config.json, which is copied last, must not contain it.
func TestRestoreBeforeSwitchBehindTheEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	was, is := fixture.ModelOf("old", 3), fixture.ModelOf("new", 4)
	models := map[string]func(string) []float32{"old": was, "new": is}
	e, older := &fixture.Embedder{}, &fixture.Embedder{}
	older.Set(fixture.AnswerBy(was))
	e.Set(fixture.AnswerBy(is))
	path := filepath.Join(dir, "s")
	fixture.SwitchStore(t, path, older)
	st := fixture.Open(t, path, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new"})
	begun := false
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if name := filepath.ToSlash(op.Path); !begun && op.Kind == wrap.Create && strings.HasSuffix(name, ".wal") &&
			!strings.Contains(name, "/s/") {
			begun = true
			if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	backup := filepath.Join(dir, "b")
	info, err := fixture.Open(t, path,
		storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{System: vfs.System{FS: fsys}})).Backup(ctx,
		backup, varve.BackupOptions{})
	if err != nil || !begun || st.Admin().Stats().Model != "new" {
		t.Fatal(err, begun, st.Admin().Stats())
	}
	if info.Last.LSN >= storetest.Inner(st).Vectors.Model().Since {
		t.Fatal("the change is in the backup")
	}
	to := filepath.Join(dir, "r")
	if _, err := varve.Restore(ctx, backup, to, nil); err != nil {
		t.Fatal(err)
	}
	r := fixture.Open(t, to, &varve.Options{NoBackground: true})
	if by, why, missing := oneModel(t, r, models); by != "old" || len(missing) > 0 {
		t.Fatalf("by %q, without %q: %s", by, missing, why)
	}
	config := r.Admin().Config()
	if c := fixture.VectorSettings(config); c.Dimension == 4 || c.Model == "new" {
		t.Errorf("config.json says %+v", c)
	}
}

// A store in which no memory has a content changes the model without a switch; restored to a moment
// after that, its config.json names the new model too.
func TestRestoreBehindAnotherName(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	was, is := fixture.ModelOf("old", 3), fixture.ModelOf("new", 3)
	e := &fixture.Embedder{}
	e.Set(fixture.AnswerBy(was))
	path := filepath.Join(dir, "s")
	old := fixture.Open(t, path, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "old"})
	if _, err := old.Put(ctx, varve.Memory{ID: "a", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil { // config.json sets the dimension
		t.Fatal(err)
	}
	backup := filepath.Join(dir, "b")
	if _, err := old.Backup(ctx, backup, varve.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := old.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	e.Set(fixture.AnswerBy(is))
	st := fixture.Open(t, path, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new"})
	if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
		t.Fatal(err)
	}
	if m, err := st.Put(ctx, varve.Memory{ID: "b", Content: "y"}); err != nil || len(m.Embedding) != 3 {
		t.Fatal(m, err)
	}
	to := filepath.Join(dir, "r")
	if _, err := varve.Restore(ctx, backup, to, &varve.RestoreOptions{Log: path}); err != nil {
		t.Fatal(err)
	}
	r := fixture.Open(t, to, &varve.Options{NoBackground: true})
	if hits, err := r.Search(ctx,
		varve.Query{Vector: is("y"), Model: "new"}); err != nil || len(hits) != 1 || hits[0].ID != "b" {
		t.Error(hits, err)
	}
	config := r.Admin().Config()
	if c := fixture.VectorSettings(config); c.Model != "new" {
		t.Errorf("config.json says %+v", c)
	}
}

// A program that does not know models can restore backups that need none.
func TestBackupFormat(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, want := range map[string]int{"": 1, "old": 2} {
		dir := t.TempDir()
		e := &fixture.Embedder{}
		o := storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{Views: []views.Maker{}})
		if name != "" {
			o.Embed, o.EmbedModel = e.Embed, name
		}
		st := fixture.Open(t, filepath.Join(dir, "s"), o)
		if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "x", Metadata: map[string]any{"k": "v"}}); err != nil {
			t.Fatal(err)
		}
		backup := filepath.Join(dir, "b")
		if _, err := st.Backup(ctx, backup, varve.BackupOptions{}); err != nil {
			t.Fatal(err)
		}
		info, err := varve.CheckBackup(ctx, backup)
		if err != nil || info.Format != want || (info.Models != nil) != (want == 2) {
			t.Errorf("of model %q: format %d, %+v, %v", name, info.Format, info.Models, err)
		}
		if _, err := varve.Restore(ctx, backup, filepath.Join(dir, "r"), nil); err != nil {
			t.Error(err)
		}
	}
}

// A process that no longer needs the computed vectors overwrites their file before it removes it: a
// backup that reads it just then keeps what it had copied before.
func TestBackupBesideOverwriting(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "s"), filepath.Join(dir, "b")
	e, older := &fixture.Embedder{}, &fixture.Embedder{}
	older.Set(fixture.AnswerBy(fixture.ModelOf("old", 3)))
	e.Set(fixture.AnswerBy(fixture.ModelOf("new", 3)))
	fixture.SwitchStore(t, path, older)
	ended, end := context.WithCancel(ctx)
	st := fixture.Open(t, path, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new", EmbedBatch: 2})
	if _, err := st.Vectors().Reembed(ended, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Written == 4 {
			end()
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	source := filepath.Join(path, "vector_index", "reembed")
	computed, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if op.Kind == wrap.Create && strings.HasSuffix(op.Path, "reembed.new") {
			if looks++; looks == 2 {
				f, err := os.OpenFile(source, os.O_WRONLY, 0)
				if err == nil {
					_, err = f.WriteAt(make([]byte, 100), 0)
					err = errors.Join(err, f.Close())
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
		return nil
	})
	o := storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{System: vfs.System{FS: fsys}})
	info, err := fixture.Open(t, path, o).Backup(ctx, backup, varve.BackupOptions{})
	if err != nil || looks != 2 {
		t.Fatal(err, looks)
	}
	got, err := os.ReadFile(filepath.Join(backup, "vector_index", "reembed"))
	if err != nil || !bytes.Equal(got, computed) || info.Computed == nil || info.Computed.Size != int64(len(computed)) {
		t.Errorf("%d bytes, %+v, %v", len(got), info.Computed, err)
	}
	if _, err := varve.CheckBackup(ctx, backup); err != nil {
		t.Error(err)
	}
}
