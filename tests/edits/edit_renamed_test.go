package edits

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// forgotten makes a store whose log and archive no longer have k0 … k2, which are only in their files.
func forgotten(t *testing.T, heard func(varve.Event)) *fixture.Editing {
	t.Helper()
	e := fixture.NewEditing(t, 3, storetest.In(&varve.Options{CacheBytes: -1, SegmentSize: 64 << 10, Listener: heard},
		storetest.Environment{System: vfs.System{SpillBytes: 64 << 10, ArchiveBytes: -1}}))
	e.Forget("k0")
	return e
}

// Of several files with its id the one with the present version is used, whatever their names are.
func TestRenamedBesideOthers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"aa", "mm", "zz"} {
		e := forgotten(t, nil)
		was := e.Text("k0")
		for _, other := range []string{"aa", "mm", "zz"} { // of them two are left
			e.Save(other, strings.Replace(was, "was 0", "tried", 1))
		}
		e.Save("mm", regexp.MustCompile(`"updated_at": "[^"]*"`).ReplaceAllString(was,
			`"updated_at": "2020-01-01T00:00:00Z"`))
		e.Rename(e.Path("k0"), e.Path(name))
		e.Settle("k0", "aa", "mm", "zz")
		e.Want("k0", "was 0")
		if e.Text("k0") != was {
			t.Errorf("%s: in its file: %s", name, e.Text("k0"))
		}
	}
}

// A renamed file may be the only copy, or an edit of it: then it is restored under the right name.
func TestRenamedIsTheOnlyCopy(t *testing.T) {
	t.Parallel()
	var told []varve.Event
	e := forgotten(t, func(ev varve.Event) {
		if ev.Kind == varve.EventDeleted {
			told = append(told, ev)
		}
	})
	was := e.Text("k0")
	e.Rename(e.Path("k0"), e.Path("other"))
	e.Edit("k1", "was 1", "edited")
	e.Rename(e.Path("k1"), e.Path("another"))
	e.Settle("k0", "k1", "other", "another")
	e.Want("k0", "was 0")
	e.Want("k1", "edited")
	e.Flush()
	if e.Text("k0") != was || !strings.Contains(e.Text("k1"), "edited") {
		t.Errorf("in their files: %s, %s", e.Text("k0"), e.Text("k1"))
	}
	if e.Text("other") != was || !strings.Contains(e.Text("another"), "edited") {
		t.Error("what was renamed was touched")
	}
	// An older copy is not treated as the memory's file, and the memory is not deleted because of it.
	e.Save("copy", e.Text("k0"))
	if _, err := e.St.Put(t.Context(), varve.Memory{ID: "k0", Content: "newer"}); err != nil {
		t.Fatal(err)
	}
	e.Forget("k0")
	if err := os.Remove(e.Path("k0")); err != nil {
		t.Fatal(err)
	}
	e.Settle("k0")
	if m, err := e.St.Get(t.Context(), "k0"); !errors.Is(err, varve.ErrCorrupt) {
		t.Errorf("gone but for an older copy: %+v, %v", m, err)
	}
	// Without these files no copy exists: then it is deleted.
	for _, id := range []string{"k2", "other", "another"} {
		if err := os.Remove(e.Path(id)); err != nil {
			t.Fatal(err)
		}
	}
	e.Settle("k2")
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
			was := e.Text("k0")
			want := "was 0"
			if edit {
				want = "edited"
				e.Edit("k0", "was 0", want)
			}
			e.Rename(e.Path("k0"), e.Dir+"/"+to)
			if err := e.St.Close(); err != nil {
				t.Fatal(err)
			}
			plan, err := varve.PlanRepair(t.Context(), e.Dir, nil, varve.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			report, err := plan.Apply(t.Context())
			if err != nil || report.Worst > varve.SeverityInfo {
				t.Fatalf("%s: %+v, %v", to, report, err)
			}
			e.St = fixture.Open(t, e.Dir, nil)
			e.Want("k0", want)
			if !edit && e.Text("k0") != was {
				t.Errorf("%s: its file: %s", to, e.Text("k0"))
			}
			if _, err := os.Stat(e.Dir + "/" + to); err == nil {
				t.Errorf("%s is still there", to)
			}
		}
	}
}

// An edit that exceeds the limits of a document stays and is reported, and the previous version is
// served; so is a new file. With the limit raised, or the file shortened, it is adopted.
func TestEditOverLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit func(c *varve.Config)
		text  string // %s: a member of the file
	}{
		"bytes": {func(c *varve.Config) { c.MaxMemoryBytes = 4096 }, `"note": "` + strings.Repeat("x", 5000) + `"`},
		"depth": {func(c *varve.Config) { c.MaxDepth = 20 },
			`"note": ` + strings.Repeat("[", 30) + strings.Repeat("]", 30)},
		"embedding": {func(c *varve.Config) { c.MaxEmbeddingDims = 8 }, `"embedding": [1,2,3,4,5,6,7,8,9]`},
	} {
		t.Run(name, func(t *testing.T) {
			var told []varve.Event
			e := fixture.NewEditing(t, 3, &varve.Options{CacheBytes: -1, Listener: func(ev varve.Event) {
				if ev.Kind == varve.EventDrift {
					told = append(told, ev)
				}
			}})
			fixture.LimitTo(t, e.St, c.limit)
			was := e.Text("k0")
			text := strings.Replace(was, `"id"`, c.text+",\n  \"id\"", 1)
			text = strings.Replace(text, "was 0", "long", 1)
			e.Save("k0", text)
			e.Save("new", strings.Replace(text, `"k0"`, `"new"`, 1))
			for range 2 {
				e.Look("k0", "new")
				e.Want("k0", "was 0")
			}
			if len(told) != 2 || !strings.Contains(fmt.Sprint(told[0].Err), "raise the limit") {
				t.Errorf("told: %+v", told)
			}
			h := e.St.Health(t.Context())
			if h.OK || len(h.Problems) != 2 || !strings.Contains(h.Problems[0].Error(), "memories/k0.json") {
				t.Errorf("health: %+v", h)
			}
			if list := refusedEdits(t, e.St); len(list) != 2 || !strings.Contains(fmt.Sprint(list[0].Err), "raise the limit") {
				t.Errorf("refused: %+v", list)
			}
			found := map[string]bool{}
			for f, err := range e.St.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				if f.Severity > varve.SeverityInfo {
					found[f.Path] = strings.Contains(fmt.Sprint(f.Err), "raise the limit")
				}
			}
			if len(found) != 2 || !found["memories/k0.json"] || !found["memories/new.json"] {
				t.Errorf("verify: %v", found)
			}
			fixture.LimitTo(t, e.St, func(c *varve.Config) { c.MaxMemoryBytes, c.MaxDepth, c.MaxEmbeddingDims = 0, 0, 0 })
			e.Look("k0", "new")
			e.Want("k0", "long")
			e.Want("new", "long")
			e.Flush()
			if h := e.St.Health(t.Context()); !h.OK {
				t.Errorf("health: %+v", h)
			}
			for f, err := range e.St.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
				if err != nil || f.Severity > varve.SeverityInfo {
					t.Errorf("afterwards: %+v, %v", f, err)
				}
			}
			// With the lower limit again, it is stored: it can be read, and written with care.
			fixture.LimitTo(t, e.St, c.limit)
			e.Want("k0", "long")
			if n := len(refusedEdits(t, e.St)); n > 0 {
				t.Errorf("%d edits are refused", n)
			}
		})
	}
}

func refusedEdits(t *testing.T, st *varve.Store) (list []varve.RefusedEdit) {
	t.Helper()
	for r, err := range st.Admin().RefusedEdits(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// A process that was told of no refused edit finds all with RefusedEdits, which adopts none.
func TestRefusedEdits(t *testing.T) {
	t.Parallel()
	e := fixture.NewEditing(t, 5, &varve.Options{CacheBytes: -1})
	other := fixture.Open(t, e.Dir, &varve.Options{ReadOnly: true, CacheBytes: -1})
	if list := refusedEdits(t, other); len(list) > 0 {
		t.Fatalf("%+v", list)
	}
	e.Save("k0", "<<<<<<< HEAD\n"+e.Text("k0"))
	e.Save("copy", e.Text("k1"))
	e.Edit("k2", "was", "is") // is only to be taken over
	e.Save("new", `{"id":"new","content":"by hand"}`)
	if err := os.Chtimes(e.Path("k3"), time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	for _, st := range []*varve.Store{e.St, other} {
		list := refusedEdits(t, st)
		if len(list) != 2 || list[0].Path != "memories/copy.json" && list[1].Path != "memories/copy.json" ||
			list[0].Err == nil || list[1].Err == nil {
			t.Errorf("%+v", list)
		}
	}
	e.Want("k2", "is 2")
}

// Health names three of the refused edits, counts the others, and omits those that were changed since.
func TestHealthOfRefusedEdits(t *testing.T) {
	t.Parallel()
	e := fixture.NewEditing(t, 6, &varve.Options{CacheBytes: -1})
	for i := range 5 {
		e.Save(fmt.Sprint("k", i), "{half")
		e.Want(fmt.Sprint("k", i), fmt.Sprint("was ", i))
	}
	problems := func() (texts []string) {
		for _, err := range e.St.Health(t.Context()).Problems {
			texts = append(texts, err.Error())
		}
		return texts
	}
	if p := problems(); len(p) != 4 || !strings.HasPrefix(p[0], "memories/k0.json cannot be adopted") ||
		!strings.HasPrefix(p[3], "2 more files") {
		t.Errorf("%q", p)
	}
	for i := range 4 {
		e.Save(fmt.Sprint("k", i), fmt.Sprintf(`{"id":"k%d","content":"is whole"}`, i))
	}
	if p := problems(); len(p) != 1 || !strings.HasPrefix(p[0], "memories/k4.json") {
		t.Errorf("%q", p)
	}
}

// repair adopts many edited and many new files in few commits.
func TestRepairAdoptsTogether(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	n := 1100
	if !proofs.Long() {
		n = 400
	}
	e := fixture.NewEditing(t, n, &varve.Options{CacheBytes: -1})
	for i := range n {
		e.Edit(fmt.Sprint("k", i), "was", "is")
		e.Save(fmt.Sprint("new", i), fmt.Sprintf(`{"id":"new%d","content":"made %d"}`, i, i))
	}
	e.Save("k7", "{half") // the fault of one file does not affect the others
	from := storetest.Inner(e.St).Engine.Log().Durable()
	if err := e.St.Close(); err != nil {
		t.Fatal(err)
	}
	plan, err := varve.PlanRepair(t.Context(), e.Dir, nil, varve.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := plan.Apply(t.Context())
	if err != nil || report.Worst > varve.SeverityInfo || len(report.Done) != 2*n {
		t.Fatalf("%d done, %+v, %v", len(report.Done), report.Remaining, err)
	}
	for _, d := range report.Done {
		if d.Err != nil || d.Result == "" {
			t.Fatalf("%+v", d)
		}
	}
	e.St = fixture.Open(t, e.Dir, &varve.Options{NoBackground: true, CacheBytes: -1})
	if commits, entries := e.Commits(from); commits > 6 || entries != 2*n-1 {
		t.Errorf("%d commits of %d entries", commits, entries)
	}
	for i := range n {
		if i != 7 {
			e.Want(fmt.Sprint("k", i), fmt.Sprint("is ", i))
		}
		e.Want(fmt.Sprint("new", i), fmt.Sprint("made ", i))
	}
	e.Want("k7", "was 7")
}

// Of two new files with one id the one under its right name is used.
func TestRepairNewTwice(t *testing.T) {
	t.Parallel()
	e := fixture.NewEditing(t, 1, &varve.Options{})
	e.Save("zz", `{"id":"new","content":"a copy"}`)
	e.Save("new", `{"id":"new","content":"made"}`)
	e.Save("another", `{"id":"new","content":"another copy"}`)
	if err := e.St.Close(); err != nil {
		t.Fatal(err)
	}
	plan, err := varve.PlanRepair(t.Context(), e.Dir, nil, varve.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := plan.Apply(t.Context()); err != nil || report.Worst > varve.SeverityInfo {
		t.Fatalf("%+v, %v", report, err)
	}
	e.St = fixture.Open(t, e.Dir, nil)
	e.Want("new", "made")
	if q := strings.Join(e.Quarantined(), ""); !strings.Contains(q, "a copy") || !strings.Contains(q, "another copy") {
		t.Errorf("in quarantine: %q", q)
	}
}

// Without a process that watches, a deletion is adopted by the next read, once the folder has been
// quiet, but not if the file was the last copy.
func TestDeletedUnwatched(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var ahead atomic.Int64
	var kinds []varve.EventKind
	e := fixture.NewEditing(t, 3, storetest.In(&varve.Options{CacheBytes: -1, NoBackground: true, SegmentSize: 64 << 10,
		Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, Listener: func(ev varve.Event) {
			if ev.Kind == varve.EventDeleted || ev.Kind == varve.EventCorruption || ev.Kind == varve.EventRestored {
				kinds = append(kinds, ev.Kind)
			}
		}}, storetest.Environment{System: vfs.System{SpillBytes: 64 << 10, ArchiveBytes: -1}}))
	e.Forget("k0")
	if _, err := e.St.Put(ctx, varve.Memory{ID: "k1", Content: "in the log"}); err != nil {
		t.Fatal(err)
	}
	e.Flush()
	for _, id := range []string{"k0", "k1"} {
		if err := os.Remove(e.Path(id)); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := e.St.Get(ctx, "k1"); err != nil || m.Content != "in the log" || len(kinds) != 0 {
		t.Fatalf("while the folder changes: %+v, %v, %v", m, err, kinds)
	}
	if _, err := os.Stat(e.Path("k1")); err == nil {
		t.Error("its file is put back")
	}
	found := map[string]repair.Severity{}
	for f, err := range e.St.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Severity != varve.SeverityInfo {
			found[f.ID] = f.Severity
			if (f.ID == "k1") != strings.Contains(f.Err.Error(), "deleted by hand") {
				t.Error(f)
			}
		}
	}
	if len(found) != 2 || found["k0"] != varve.SeverityLost || found["k1"] != varve.SeverityHealable {
		t.Error(found)
	}
	ahead.Store(int64(time.Hour))
	if _, err := e.St.Get(ctx, "k1"); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("deleted by hand: %v", err)
	}
	if _, err := e.St.Get(ctx, "k0"); !errors.Is(err, varve.ErrCorrupt) {
		t.Errorf("the last copy: %v", err)
	}
	if !slices.Equal(kinds, []varve.EventKind{varve.EventDeleted}) {
		t.Error(kinds)
	}
	last := varve.Version{}
	for v, err := range e.St.History(ctx, "k1") {
		if last = v; err != nil {
			t.Error(err)
		}
	}
	if !last.Deleted {
		t.Errorf("%+v", last)
	}
}
