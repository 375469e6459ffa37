package edits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

func keys(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("k", i))
	}
	return list
}

// Many edited files take few commits, and edits that are too large for one commit are adopted in
// several.
func TestAdoptedTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ n, size, most, segment int }{
		"small": {1200, 10, 3, 0},
		"large": {12, 1 << 20, 6, 0},                       // bounded in memory
		"log":   {40, 3000, 12, 64 << 10},                  // half a segment is the maximum
		"alone": {3, 28 << 10, 4, 64 << 10},                // one after the other
		"bytes": {600, commit.PartsBytes / 600 * 2, 14, 0}, // of many
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adopted := 0
			e := fixture.NewEditing(t, c.n, &varve.Options{SegmentSize: c.segment, Listener: func(ev varve.Event) {
				if ev.Kind == varve.EventAdopted {
					adopted++
				}
			}})
			large := storetest.Text(c.size)
			for i := range c.n {
				e.Edit(fmt.Sprint("k", i), fmt.Sprintf(`"was %d"`, i), fmt.Sprintf(`"is %d %s"`, i, large))
			}
			e.Save("new", `{"id":"new","content":"made"}`)
			from := storetest.Inner(e.St).Engine.Log().Durable()
			e.Look(append(keys(c.n), "new")...)
			commits, entries := e.Commits(from)
			if commits > c.most || entries != c.n+1 || adopted != c.n+1 {
				t.Errorf("%d commits of %d entries, %d adopted; want %d of %d", commits, entries, adopted, c.most, c.n+1)
			}
			for i := range c.n {
				e.Want(fmt.Sprint("k", i), fmt.Sprintf("is %d %s", i, large))
			}
			e.Want("new", "made")
			e.Flush()
			if q := e.Quarantined(); len(q) > 0 {
				t.Errorf("%d in quarantine", len(q))
			}
		})
	}
}

// One of many files is written meanwhile, one is not valid, one is of an older version and one is gone:
// each has its own outcome, and none delays the others.
func TestAdoptedBesideOthers(t *testing.T) {
	t.Parallel()
	var other *varve.Store
	wrote, had := map[string]bool{}, map[string]varve.Memory{}
	hook := func(op *wrap.Op, call func() error) error {
		id := strings.TrimSuffix(filepath.Base(op.Path), ".json")
		if op.Kind == wrap.Open && (id == "k3" || id == "k5") && other != nil && !wrote[id] {
			wrote[id] = true // between the read of the index and the commit
			m := had[id]     // it need not read the file
			m.Content = "by another process"
			if _, err := other.Put(t.Context(), m); err != nil {
				t.Error(err)
			}
		}
		return call()
	}
	e := fixture.NewEditing(t, 20, storetest.In(&varve.Options{},
		storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), hook)}}))
	stale := e.Text("k7")
	if _, err := e.St.Put(t.Context(), varve.Memory{ID: "k7", Content: "newer"}); err != nil {
		t.Fatal(err)
	}
	e.Flush()
	writer := fixture.Open(t, e.Dir, &varve.Options{NoBackground: true})
	for _, id := range []string{"k3", "k5"} {
		m, err := writer.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		had[id] = m
	}
	texts := map[string]string{}
	for i := range 12 {
		if id := fmt.Sprint("k", i); i != 7 {
			texts[id] = e.Edit(id, "was", "is")
		}
	}
	e.Save("k7", strings.Replace(stale, "was", "an hour ago", 1))
	e.Save("k9", "<<<<<<< HEAD\n"+e.Text("k9"))
	if err := os.Remove(e.Path("k11")); err != nil {
		t.Fatal(err)
	}
	other = writer
	from := storetest.Inner(e.St).Engine.Log().Durable()
	if absent := e.Look(keys(20)...); !slices.Equal(absent, []string{"k11.json"}) {
		t.Errorf("absent: %q", absent)
	}
	if commits, entries := e.Commits(from); commits > 4 || entries != 2+7 {
		t.Errorf("%d commits of %d entries", commits, entries)
	}
	for i := range 20 {
		id := fmt.Sprint("k", i)
		switch {
		case i == 3 || i == 5:
			e.Want(id, "by another process")
		case i == 7:
			e.Want(id, "newer")
		case i == 9 || i == 11 || i > 11:
			e.Want(id, fmt.Sprint("was ", i))
		default:
			e.Want(id, fmt.Sprint("is ", i))
		}
	}
	e.Flush()
	q := strings.Join(e.Quarantined(), "\n")
	for _, text := range []string{texts["k3"], texts["k5"], "an hour ago"} {
		if !strings.Contains(q, text) {
			t.Errorf("not in quarantine: %s", text)
		}
	}
	if len(e.Quarantined()) != 3 {
		t.Errorf("in quarantine: %s", q)
	}
	if text := e.Text("k9"); !strings.HasPrefix(text, "<<<<<<<") {
		t.Errorf("the file with the marks of a merge was touched: %s", text)
	}
}

// An edit of an older version that cannot be set aside because the disk is full is not adopted instead:
// that would put it over the newer version.
func TestStaleOnFullDisk(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	hook := func(op *wrap.Op, call func() error) error {
		if full.Load() && op.Kind == wrap.Create && strings.Contains(filepath.ToSlash(op.Path), "/quarantine/") {
			return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.ENOSPC}
		}
		return call()
	}
	told := 0
	e := fixture.NewEditing(t, 3, storetest.In(&varve.Options{Listener: func(ev varve.Event) {
		if ev.Kind == varve.EventDrift && ev.Path == "memories/k1.json" && errors.Is(ev.Err, syscall.ENOSPC) {
			told++
		}
	}}, storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), hook)}}))
	stale := e.Text("k1")
	if _, err := e.St.Put(t.Context(), varve.Memory{ID: "k1", Content: "newer"}); err != nil {
		t.Fatal(err)
	}
	e.Flush()
	e.Save("k1", strings.Replace(stale, "was", "an hour ago", 1))
	e.Edit("k2", "was", "is")
	full.Store(true)
	e.Look("k0", "k1", "k2")
	full.Store(false)
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	if m, err := e.St.Get(t.Context(), "k1"); err != nil || m.Content != "newer" {
		t.Errorf("%q, %v", m.Content, err)
	}
	e.Want("k2", "is 2")
	e.Flush()
	if q := e.Quarantined(); len(q) != 1 || !strings.Contains(q[0], "an hour ago") {
		t.Errorf("in quarantine: %q", q)
	}
}

// A file that is empty when it is examined, because its editor is slow, is restored; what the editor
// then saves into the displaced file is adopted nevertheless.
func TestSavedSlowly(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // of f and text: the log prepares files beside the test
	var f *os.File
	text := ""
	hook := func(op *wrap.Op, call func() error) error {
		err := call()
		mu.Lock()
		defer mu.Unlock()
		if f != nil && op.Kind == wrap.Exchange && strings.HasSuffix(op.Path+op.To, "k0.json") {
			if _, err := f.WriteString(text); err != nil {
				t.Error(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			f = nil
		}
		return err
	}
	e := fixture.NewEditing(t, 2, storetest.In(&varve.Options{},
		storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), hook)}}))
	release, err := adopt.NewFiles(storetest.Inner(e.St).Adopter).Lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	slow, err := os.OpenFile(e.Path("k0"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	saved := strings.Replace(e.Text("k0"), "was", "saved slowly", 1)
	if err := slow.Truncate(0); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	f, text = slow, saved
	mu.Unlock()
	e.Look("k0", "k1")
	mu.Lock()
	unsaved := f != nil
	mu.Unlock()
	if unsaved {
		t.Skip("files are not exchanged here")
	}
	e.Want("k0", "saved slowly 0")
	if got := e.Text("k0"); got != saved {
		t.Errorf("its file: %s", got)
	}
}

// Members of one assembly whose embeddings are changed by hand change the assembly once for all.
func TestAdoptedMembers(t *testing.T) {
	t.Parallel()
	e := fixture.NewEditing(t, 0, &varve.Options{})
	var members []string
	for i := range 30 {
		id := fmt.Sprint("k", i)
		if _, err := e.St.Put(t.Context(), varve.Memory{ID: id, Content: "was", Embedding: []float32{1, 0}}); err != nil {
			t.Fatal(err)
		}
		members = append(members, id)
	}
	if _, err := e.St.Assemblies().Put(t.Context(), varve.Assembly{ID: "g", MemoryIDs: members}); err != nil {
		t.Fatal(err)
	}
	e.Flush()
	for _, id := range members {
		text := e.Text(id)
		i := strings.Index(text, `"embedding": [`)
		j := i + strings.Index(text[i:], "]")
		e.Save(id, text[:i]+`"embedding": [0, 1`+text[j:])
	}
	from := storetest.Inner(e.St).Engine.Log().Durable()
	e.Look(members...)
	if commits, entries := e.Commits(from); commits != 1 || entries != 31 {
		t.Errorf("%d commits of %d entries, want 1 of 31", commits, entries)
	}
	g, err := e.St.Assemblies().Get(t.Context(), "g")
	if err != nil || !slices.Equal(g.CompositeEmbedding, []float32{0, 1}) {
		t.Errorf("%v, %v", g.CompositeEmbedding, err)
	}
}

// Files that are deleted together are deleted, or restored, together.
func TestGoneTogether(t *testing.T) {
	t.Parallel()
	for _, adopts := range []bool{true, false} {
		e := fixture.NewEditing(t, 40, &varve.Options{})
		c := e.St.Admin().Config()
		c.AdoptDeletions = &adopts
		if err := e.St.Admin().SetConfig(c); err != nil {
			t.Fatal(err)
		}
		if _, err := e.St.Assemblies().Put(t.Context(), varve.Assembly{ID: "g", MemoryIDs: keys(30)}); err != nil {
			t.Fatal(err)
		}
		e.Flush()
		for _, id := range keys(15) {
			if err := os.Remove(e.Path(id)); err != nil {
				t.Fatal(err)
			}
		}
		// One is written again before the deletion is adopted.
		if _, err := e.St.Put(t.Context(), varve.Memory{ID: "k4", Content: "again"}); err != nil {
			t.Fatal(err)
		}
		from := storetest.Inner(e.St).Engine.Log().Durable()
		if err := adopt.NewFiles(storetest.Inner(e.St).Adopter).Settle(t.Context(), "memories", keys(15)); err != nil {
			t.Fatal(err)
		}
		commits, entries := e.Commits(from)
		if want := 15; adopts && (commits != 1 || entries != want) || !adopts && commits != 0 {
			t.Errorf("adopt %v: %d commits of %d entries", adopts, commits, entries)
		}
		for i := range 15 {
			id := fmt.Sprint("k", i)
			switch m, err := e.St.Get(t.Context(), id); {
			case i == 4 && (err != nil || m.Content != "again"):
				t.Errorf("%s: %+v, %v", id, m, err)
			case i != 4 && adopts && !errors.Is(err, varve.ErrNotFound):
				t.Errorf("%s: %v", id, err)
			case i != 4 && !adopts && err != nil:
				t.Errorf("%s: %v", id, err)
			}
		}
		if g, err := e.St.Assemblies().Get(t.Context(),
			"g"); err != nil || adopts && len(g.MemoryIDs) != 16 || !adopts && len(g.MemoryIDs) != 30 {
			t.Errorf("%d members, %v", len(g.MemoryIDs), err)
		}
	}
}

// Killed or cut off at any point while edits are adopted: no user's text is lost, the served text is the
// edit or the one it was made from, and the next look completes the adoption.
func TestAdoptCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const list = 4 // of k0…k3; the file of k4 is of an older version, k5's is gone
	texts := map[string][]byte{}
	prepare := func(t *testing.T) *fixture.Rig {
		r, _ := fixture.Filled(t)
		o := r.Options(2)
		stale, err := vfs.ReadFile(storetest.Of(o).System.FS, "/s/memories/k4.json", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		st, err := varve.Open(ctx, "/s", o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Put(ctx, varve.Memory{ID: "k4", Content: "newer"}); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		save := func(id string, text []byte) {
			texts[id] = text
			if err := vfs.WriteDurable(storetest.Of(o).System.FS, "/s/edit.new", "/s/memories/"+id+".json", text,
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		for i := range list {
			id := fmt.Sprint("k", i)
			text, err := vfs.ReadFile(storetest.Of(o).System.FS, "/s/memories/"+id+".json", 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			save(id, bytes.Replace(text, []byte(`"content": "`), []byte(`"content": "by hand `), 1))
		}
		save("k4", bytes.Replace(stale, []byte(`"content": "`), []byte(`"content": "stale `), 1))
		save("new", []byte(`{"id":"new","content":"made by hand"}`))
		if err := storetest.Of(o).System.FS.Remove("/s/memories/k5.json"); err != nil {
			t.Fatal(err)
		}
		if err := storetest.Of(o).System.FS.SyncDir("/s/memories"); err != nil {
			t.Fatal(err)
		}
		return r
	}
	all := []string{"k0.json", "k1.json", "k2.json", "k3.json", "k4.json", "k5.json", "new.json"}
	job := func(r *fixture.Rig) error {
		st, err := varve.Open(ctx, "/s", r.Options(3))
		if err != nil {
			return err
		}
		f := adopt.NewFiles(storetest.Inner(st).Adopter)
		absent, err := f.Look(ctx, "memories", all)
		if err == nil {
			var gone []string
			if gone, err = f.Gone(ctx, "memories", absent); err == nil {
				err = f.Settle(ctx, "memories", gone)
			}
		}
		return errors.Join(err, st.Close())
	}
	for what, fault := range map[string]error{"killed": nil, "error": errors.New("injected")} {
		t.Run(what, func(t *testing.T) {
			fixture.CutAtEach(t, prepare, fault, job, func(t *testing.T, r *fixture.Rig, done bool) {
				done = done && fault == nil // an error about one file does not end the adoption
				for again := range 2 {
					st, err := varve.Open(ctx, "/s", r.Options(byte(4+again)))
					if err != nil {
						t.Fatal(err)
					}
					got := fixture.ContentsOf(t, st)
					for i := range list {
						id := fmt.Sprint("k", i)
						if hand := strings.HasPrefix(got[id], "by hand "); !hand && (done || again > 0) &&
							!inQuarantine(t, r, texts[id]) {
							t.Errorf("%s is %q, and the edit is nowhere", id, got[id])
						}
					}
					if got["k4"] != "newer" {
						t.Errorf("k4 is %q", got["k4"])
					}
					if got["new"] != "made by hand" && (done || again > 0) && !inQuarantine(t, r, texts["new"]) {
						t.Errorf("the new one is %q", got["new"])
					}
					if again == 0 {
						if text, ok := got["k5"]; ok && done {
							t.Errorf("k5 was deleted, and is %q", text)
						}
						if _, err := adopt.NewFiles(storetest.Inner(st).Adopter).Look(ctx, "memories", all); err != nil {
							t.Error(err)
						}
					} else {
						for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
							if err != nil || f.Severity > 0 && !strings.Contains(f.Path, "k5") {
								t.Errorf("%+v, %v", f, err)
							}
						}
						if !inQuarantine(t, r, texts["k4"]) {
							t.Error("the stale edit is nowhere")
						}
					}
					if err := st.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// inQuarantine reports whether a text was set aside.
func inQuarantine(t *testing.T, r *fixture.Rig, text []byte) bool {
	t.Helper()
	fsys := storetest.Of(r.Options(8)).System.FS
	names, err := fsys.ReadDir("/s/quarantine")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if b, err := vfs.ReadFile(fsys, "/s/quarantine/"+name, 1<<20); err == nil && bytes.Equal(b, text) {
			return true
		}
	}
	return false
}
