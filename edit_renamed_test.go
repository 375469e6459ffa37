package varve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// forgotten is a store whose log and archive no longer have what k0 … k2 are, which is in
// their files.
func forgotten(t *testing.T, heard func(Event)) *editing {
	t.Helper()
	e := edited(t, 3, storetest.In(&Options{CacheBytes: -1, SegmentSize: 64 << 10, Listener: heard}, storetest.Environment{System: vfs.System{SpillBytes: 64 << 10, ArchiveBytes: -1}}))
	e.forget("k0")
	return e
}

// forget writes until the log no longer has the newest version of a memory.
func (e *editing) forget(id string) {
	e.t.Helper()
	t := e.t
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		text := make([]byte, 8000)
		for j := range text {
			text[j] = 'a' + byte(noise.UintN(26))
		}
		if _, err := e.st.Put(t.Context(), Memory{ID: "more", Content: string(text)}); err != nil {
			t.Fatal(err)
		}
		if i%5 == 4 {
			if err := e.st.Admin().Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	v, err := e.st.inner.Engine.Find(t.Context(), e.st.inner.Engine.Kinds().Memories, id, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := e.st.inner.Engine.FromLog(t.Context(), e.st.inner.Engine.Kinds().Memories, id, v.LSN); ok {
		t.Fatal("the log still has it")
	}
}

// settle is what a watcher does with files that stay gone.
func (e *editing) settle(ids ...string) {
	e.t.Helper()
	f := adopt.NewFiles(e.st.inner.Adopter)
	absent := e.look(ids...)
	gone, err := f.Gone(e.t.Context(), "memories", absent)
	if err == nil {
		err = f.Settle(e.t.Context(), "memories", gone)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *editing) rename(from, to string) {
	e.t.Helper()
	if err := os.Rename(from, to); err != nil {
		e.t.Fatal(err)
	}
}

// Of several files with its id the one that is the version counts, whatever they are called.
func TestRenamedBesideOthers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"aa", "mm", "zz"} {
		e := forgotten(t, nil)
		was := e.text("k0")
		for _, other := range []string{"aa", "mm", "zz"} { // of them two are left
			e.save(other, strings.Replace(was, "was 0", "tried", 1))
		}
		e.save("mm", regexp.MustCompile(`"updated_at": "[^"]*"`).ReplaceAllString(was, `"updated_at": "2020-01-01T00:00:00Z"`))
		e.rename(e.path("k0"), e.path(name))
		e.settle("k0", "aa", "mm", "zz")
		e.want("k0", "was 0")
		if e.text("k0") != was {
			t.Errorf("%s: in its file: %s", name, e.text("k0"))
		}
	}
}

// A renamed file may be the only copy, or an edit of it: then that is what is put back.
func TestRenamedIsTheOnlyCopy(t *testing.T) {
	t.Parallel()
	var told []Event
	e := forgotten(t, func(ev Event) {
		if ev.Kind == EventDeleted {
			told = append(told, ev)
		}
	})
	was := e.text("k0")
	e.rename(e.path("k0"), e.path("other"))
	e.edit("k1", "was 1", "edited")
	e.rename(e.path("k1"), e.path("another"))
	e.settle("k0", "k1", "other", "another")
	e.want("k0", "was 0")
	e.want("k1", "edited")
	e.flush()
	if e.text("k0") != was || !strings.Contains(e.text("k1"), "edited") {
		t.Errorf("in their files: %s, %s", e.text("k0"), e.text("k1"))
	}
	if e.text("other") != was || !strings.Contains(e.text("another"), "edited") {
		t.Error("what was renamed was touched")
	}
	// An older copy is not taken for it, and it is not deleted for all that.
	e.save("copy", e.text("k0"))
	if _, err := e.st.Put(t.Context(), Memory{ID: "k0", Content: "newer"}); err != nil {
		t.Fatal(err)
	}
	e.forget("k0")
	if err := os.Remove(e.path("k0")); err != nil {
		t.Fatal(err)
	}
	e.settle("k0")
	if m, err := e.st.Get(t.Context(), "k0"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("gone but for an older copy: %+v, %v", m, err)
	}
	// Without them nobody has it: then it is deleted.
	for _, id := range []string{"k2", "other", "another"} {
		if err := os.Remove(e.path(id)); err != nil {
			t.Fatal(err)
		}
	}
	e.settle("k2")
	if len(told) != 1 || told[0].ID != "k2" || !strings.Contains(told[0].Note, "the only copy") {
		t.Errorf("deleted: %+v", told)
	}
}

// repair finds the only copy of a memory also under another name, and in the other folder.
func TestRepairRenamed(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"memories/other.json", "assemblies/k0.json"} {
		for _, edit := range []bool{false, true} {
			e := forgotten(t, nil)
			was := e.text("k0")
			want := "was 0"
			if edit {
				want = "edited"
				e.edit("k0", "was 0", want)
			}
			e.rename(e.path("k0"), e.dir+"/"+to)
			if err := e.st.Close(); err != nil {
				t.Fatal(err)
			}
			plan, err := PlanRepair(t.Context(), e.dir, nil, VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			report, err := plan.Apply(t.Context())
			if err != nil || report.Worst > SeverityInfo {
				t.Fatalf("%s: %+v, %v", to, report, err)
			}
			e.st = openTest(t, e.dir, nil)
			e.want("k0", want)
			if !edit && e.text("k0") != was {
				t.Errorf("%s: its file: %s", to, e.text("k0"))
			}
			if _, err := os.Stat(e.dir + "/" + to); err == nil {
				t.Errorf("%s is still there", to)
			}
		}
	}
}

// An edit over the limits of a document stays, is told, and the version before it is
// served; so does a new file. With the limit raised, or shortened, it is taken over.
func TestEditOverLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit func(c *Config)
		text  string // %s: a member of the file
	}{
		"bytes":     {func(c *Config) { c.MaxMemoryBytes = 4096 }, `"note": "` + strings.Repeat("x", 5000) + `"`},
		"depth":     {func(c *Config) { c.MaxDepth = 20 }, `"note": ` + strings.Repeat("[", 30) + strings.Repeat("]", 30)},
		"embedding": {func(c *Config) { c.MaxEmbeddingDims = 8 }, `"embedding": [1,2,3,4,5,6,7,8,9]`},
	} {
		t.Run(name, func(t *testing.T) {
			var told []Event
			e := edited(t, 3, &Options{CacheBytes: -1, Listener: func(ev Event) {
				if ev.Kind == EventDrift {
					told = append(told, ev)
				}
			}})
			limitTo(t, e.st, c.limit)
			was := e.text("k0")
			text := strings.Replace(was, `"id"`, c.text+",\n  \"id\"", 1)
			text = strings.Replace(text, "was 0", "long", 1)
			e.save("k0", text)
			e.save("new", strings.Replace(text, `"k0"`, `"new"`, 1))
			for range 2 {
				e.look("k0", "new")
				e.want("k0", "was 0")
			}
			if len(told) != 2 || !strings.Contains(fmt.Sprint(told[0].Err), "raise the limit") {
				t.Errorf("told: %+v", told)
			}
			h := e.st.Health(t.Context())
			if h.OK || len(h.Problems) != 2 || !strings.Contains(h.Problems[0].Error(), "memories/k0.json") {
				t.Errorf("health: %+v", h)
			}
			if list := refusedEdits(t, e.st); len(list) != 2 || !strings.Contains(fmt.Sprint(list[0].Err), "raise the limit") {
				t.Errorf("refused: %+v", list)
			}
			found := map[string]bool{}
			for f, err := range e.st.Admin().Verify(t.Context(), VerifyOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				if f.Severity > SeverityInfo {
					found[f.Path] = strings.Contains(fmt.Sprint(f.Err), "raise the limit")
				}
			}
			if len(found) != 2 || !found["memories/k0.json"] || !found["memories/new.json"] {
				t.Errorf("verify: %v", found)
			}
			limitTo(t, e.st, func(c *Config) { c.MaxMemoryBytes, c.MaxDepth, c.MaxEmbeddingDims = 0, 0, 0 })
			e.look("k0", "new")
			e.want("k0", "long")
			e.want("new", "long")
			e.flush()
			if h := e.st.Health(t.Context()); !h.OK {
				t.Errorf("health: %+v", h)
			}
			for f, err := range e.st.Admin().Verify(t.Context(), VerifyOptions{}) {
				if err != nil || f.Severity > SeverityInfo {
					t.Errorf("afterwards: %+v, %v", f, err)
				}
			}
			// Lowered again, it is what is stored: read, and written with care.
			limitTo(t, e.st, c.limit)
			e.want("k0", "long")
			if n := len(refusedEdits(t, e.st)); n > 0 {
				t.Errorf("%d edits are refused", n)
			}
		})
	}
}

func refusedEdits(t *testing.T, st *Store) (list []RefusedEdit) {
	t.Helper()
	for r, err := range st.Admin().RefusedEdits(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// RefusedEdits are found by who was told of none of them, and by nobody taken over.
func TestRefusedEdits(t *testing.T) {
	t.Parallel()
	e := edited(t, 5, &Options{CacheBytes: -1})
	other := openTest(t, e.dir, &Options{ReadOnly: true, CacheBytes: -1})
	if list := refusedEdits(t, other); len(list) > 0 {
		t.Fatalf("%+v", list)
	}
	e.save("k0", "<<<<<<< HEAD\n"+e.text("k0"))
	e.save("copy", e.text("k1"))
	e.edit("k2", "was", "is") // is only to be taken over
	e.save("new", `{"id":"new","content":"by hand"}`)
	if err := os.Chtimes(e.path("k3"), time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	for _, st := range []*Store{e.st, other} {
		list := refusedEdits(t, st)
		if len(list) != 2 || list[0].Path != "memories/copy.json" && list[1].Path != "memories/copy.json" || list[0].Err == nil || list[1].Err == nil {
			t.Errorf("%+v", list)
		}
	}
	e.want("k2", "is 2")
}

// Health names three of the edits that were refused, counts the others, and leaves out
// what somebody has changed since.
func TestHealthOfRefusedEdits(t *testing.T) {
	t.Parallel()
	e := edited(t, 6, &Options{CacheBytes: -1})
	for i := range 5 {
		e.save(fmt.Sprint("k", i), "{half")
		e.want(fmt.Sprint("k", i), fmt.Sprint("was ", i))
	}
	problems := func() (texts []string) {
		for _, err := range e.st.Health(t.Context()).Problems {
			texts = append(texts, err.Error())
		}
		return texts
	}
	if p := problems(); len(p) != 4 || !strings.HasPrefix(p[0], "memories/k0.json cannot be taken over") || !strings.HasPrefix(p[3], "2 more files") {
		t.Errorf("%q", p)
	}
	for i := range 4 {
		e.save(fmt.Sprint("k", i), fmt.Sprintf(`{"id":"k%d","content":"is whole"}`, i))
	}
	if p := problems(); len(p) != 1 || !strings.HasPrefix(p[0], "memories/k4.json") {
		t.Errorf("%q", p)
	}
}

// repair takes many edited and many new files over in few commits.
func TestRepairAdoptsTogether(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	n := 1100
	if !proofs.Long() {
		n = 400
	}
	e := edited(t, n, &Options{CacheBytes: -1})
	for i := range n {
		e.edit(fmt.Sprint("k", i), "was", "is")
		e.save(fmt.Sprint("new", i), fmt.Sprintf(`{"id":"new%d","content":"made %d"}`, i, i))
	}
	e.save("k7", "{half") // what is wrong with one is its own
	from := e.st.inner.Engine.Log().Durable()
	if err := e.st.Close(); err != nil {
		t.Fatal(err)
	}
	plan, err := PlanRepair(t.Context(), e.dir, nil, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := plan.Apply(t.Context())
	if err != nil || report.Worst > SeverityInfo || len(report.Done) != 2*n {
		t.Fatalf("%d done, %+v, %v", len(report.Done), report.Remaining, err)
	}
	for _, d := range report.Done {
		if d.Err != nil || d.Result == "" {
			t.Fatalf("%+v", d)
		}
	}
	e.st = openTest(t, e.dir, &Options{NoBackground: true, CacheBytes: -1})
	if commits, entries := e.commits(from); commits > 6 || entries != 2*n-1 {
		t.Errorf("%d commits of %d entries", commits, entries)
	}
	for i := range n {
		if i != 7 {
			e.want(fmt.Sprint("k", i), fmt.Sprint("is ", i))
		}
		e.want(fmt.Sprint("new", i), fmt.Sprint("made ", i))
	}
	e.want("k7", "was 7")
}

// Of two new files with one id the one under its right name counts.
func TestRepairNewTwice(t *testing.T) {
	t.Parallel()
	e := edited(t, 1, &Options{})
	e.save("zz", `{"id":"new","content":"a copy"}`)
	e.save("new", `{"id":"new","content":"made"}`)
	e.save("another", `{"id":"new","content":"another copy"}`)
	if err := e.st.Close(); err != nil {
		t.Fatal(err)
	}
	plan, err := PlanRepair(t.Context(), e.dir, nil, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := plan.Apply(t.Context()); err != nil || report.Worst > SeverityInfo {
		t.Fatalf("%+v, %v", report, err)
	}
	e.st = openTest(t, e.dir, nil)
	e.want("new", "made")
	if q := strings.Join(e.quarantined(), ""); !strings.Contains(q, "a copy") || !strings.Contains(q, "another copy") {
		t.Errorf("in quarantine: %q", q)
	}
}

// Without a process that watches, a deletion is taken over by the next read, once the folder has been
// quiet, and not where the file was the last copy.
func TestDeletedUnwatched(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var ahead atomic.Int64
	var kinds []EventKind
	e := edited(t, 3, storetest.In(&Options{CacheBytes: -1, NoBackground: true, SegmentSize: 64 << 10, Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, Listener: func(ev Event) {
		if ev.Kind == EventDeleted || ev.Kind == EventCorruption || ev.Kind == EventRestored {
			kinds = append(kinds, ev.Kind)
		}
	}}, storetest.Environment{System: vfs.System{SpillBytes: 64 << 10, ArchiveBytes: -1}}))
	e.forget("k0")
	if _, err := e.st.Put(ctx, Memory{ID: "k1", Content: "in the log"}); err != nil {
		t.Fatal(err)
	}
	e.flush()
	for _, id := range []string{"k0", "k1"} {
		if err := os.Remove(e.path(id)); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := e.st.Get(ctx, "k1"); err != nil || m.Content != "in the log" || len(kinds) != 0 {
		t.Fatalf("while the folder changes: %+v, %v, %v", m, err, kinds)
	}
	if _, err := os.Stat(e.path("k1")); err == nil {
		t.Error("its file is put back")
	}
	found := map[string]repair.Severity{}
	for f, err := range e.st.Admin().Verify(ctx, VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Severity != SeverityInfo {
			found[f.ID] = f.Severity
			if (f.ID == "k1") != strings.Contains(f.Err.Error(), "deleted by hand") {
				t.Error(f)
			}
		}
	}
	if len(found) != 2 || found["k0"] != SeverityLost || found["k1"] != SeverityHealable {
		t.Error(found)
	}
	ahead.Store(int64(time.Hour))
	if _, err := e.st.Get(ctx, "k1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted by hand: %v", err)
	}
	if _, err := e.st.Get(ctx, "k0"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the last copy: %v", err)
	}
	if !slices.Equal(kinds, []EventKind{EventDeleted}) {
		t.Error(kinds)
	}
	last := Version{}
	for v, err := range e.st.History(ctx, "k1") {
		if last = v; err != nil {
			t.Error(err)
		}
	}
	if !last.Deleted {
		t.Errorf("%+v", last)
	}
}
