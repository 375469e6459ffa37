package backups

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// aside is a store with files in quarantine/, each with a note if from is not "".
type aside struct {
	*testing.T
	st  *varve.Store
	dir string
	now time.Time
}

func newAside(t *testing.T) *aside {
	t.Helper()
	a := &aside{T: t, dir: filepath.Join(t.TempDir(), "s"), now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	a.open(&varve.Options{})
	t.Cleanup(func() { _ = a.st.Close() })
	return a
}

func (a *aside) open(o *varve.Options) {
	a.Helper()
	o.NoBackground, o.Clock = true, func() time.Time { return a.now }
	var err error
	if a.st, err = varve.Open(a.Context(), a.dir, o); err != nil {
		a.Fatal(err)
	}
}

func (a *aside) put(name, text, from, id string) {
	a.Helper()
	folder := filepath.Join(a.dir, "quarantine")
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)
	}
	if err == nil && from != "" {
		note := fmt.Sprintf(`{"why":"a test","when":"2026-04-01T00:00:00Z","from":%q,"id":%q}`, from, id)
		err = os.WriteFile(filepath.Join(folder, name+".note.json"), []byte(note), 0o600)
	}
	if err != nil {
		a.Fatal(err)
	}
}

func (a *aside) content(id string) string {
	a.Helper()
	m, err := a.st.Get(a.Context(), id)
	if err != nil {
		a.Fatal(err)
	}
	return m.Content
}

func TestQuarantineRestore(t *testing.T) {
	t.Parallel()
	a := newAside(t)
	ctx, q := t.Context(), a.st.Admin().Quarantine()
	first, err := a.st.Put(ctx, varve.Memory{ID: "m", Content: "present"})
	if err != nil {
		t.Fatal(err)
	}
	a.put("1-m.json", `{"id":"m","content":"aside","note":"kept"}`, "memories/m.json", "m")
	a.put("2-unnamed.json", `{"content":"without an id"}`, "memories/unnamed.json", "unnamed")
	a.put("3-g.json", `{"assembly_id":"g","name":"group","memory_ids":["m","gone"]}`, "assemblies/g.json", "g")
	a.put("4-moved.json", `{"assembly_id":"h","name":"moved","memory_ids":["m"]}`, "memories/moved.json", "moved")
	a.put("5-plain.json", `{"id":"plain","content":"no note"}`, "", "")
	a.put("6-old.json", `{"id":"old","content":"expired","expires_at":"2026-01-01T00:00:00Z"}`, "tmp/x/0/1", "")
	a.put("7-broken.json", `{"id":"broken","content":`, "memories/broken.json", "broken")
	a.put("8-scope.json", `{"id":"scope","content":"x"}`, "working/scope.json", "scope")
	a.put("9-unnamed.json", `{"content":"without an id and a note"}`, "", "")

	var conflict *varve.ConflictError
	for _, cond := range []varve.Cond{varve.IfAbsent(), varve.IfVersion(first.Version + 64)} {
		if _, err := q.Restore(ctx, "1-m.json", cond); !errors.As(err, &conflict) || a.content("m") != "present" {
			t.Errorf("restored over %q: %v", a.content("m"), err)
		}
	}
	r, err := q.Restore(ctx, "1-m.json", varve.IfVersion(first.Version))
	if err != nil || r.ID != "m" || r.Assembly || a.content("m") != "aside" {
		t.Errorf("%+v, %v: %q", r, err, a.content("m"))
	}
	if raw, err := a.st.Admin().GetRaw(ctx, "m"); err != nil || !bytes.Contains(raw, []byte(`"note"`)) {
		t.Errorf("a member that the store does not know is lost: %s, %v", raw, err)
	}
	if v, err := a.st.GetAt(ctx, "m", first.Version); err != nil || !bytes.Contains(v.Document, []byte("present")) {
		t.Errorf("the version before is not in the history: %s, %v", v.Document, err)
	}
	for name, want := range map[string]varve.RestoredDocument{
		"2-unnamed.json": {ID: "unnamed"}, "3-g.json": {ID: "g", Assembly: true}, "4-moved.json": {ID: "h", Assembly: true},
		"5-plain.json": {ID: "plain"}, "6-old.json": {ID: "old"},
	} {
		got, err := q.Restore(ctx, name)
		if want.Version = got.Version; err != nil || got != want || got.Version == 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if a.content("unnamed") != "without an id" || a.content("old") != "expired" {
		t.Error("the content is another")
	}
	if g, err := a.st.Assemblies().Get(ctx, "g"); err != nil || len(g.MemoryIDs) != 2 {
		t.Errorf("%+v, %v", g, err)
	}
	for _, name := range []string{"7-broken.json", "8-scope.json", "9-unnamed.json"} {
		if _, err := q.Restore(ctx, name); !errors.Is(err, varve.ErrInvalid) || !strings.Contains(err.Error(),
			"quarantine/"+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "../config.json", "nothing", "1-m.json/x"} {
		if _, err := q.Restore(ctx, name); err == nil {
			t.Errorf("%q is restored", name)
		}
		if dropped, err := q.Drop(ctx, name); err == nil || len(dropped) > 0 {
			t.Errorf("%q is dropped", name)
		}
	}
	if n, err := q.Count(); n != 9 || err != nil {
		t.Errorf("%d things, %v", n, err)
	}
}

// The files in quarantine/ can be listed and read in a read-only store.
func TestQuarantineReadOnly(t *testing.T) {
	t.Parallel()
	a := newAside(t)
	a.put("1-m.json", `{"id":"m","content":"aside"}`, "memories/m.json", "m")
	a.put("2-later.json", "", "", "")
	if err := errors.Join(os.Mkdir(filepath.Join(a.dir, "quarantine", "folder"), 0o700), a.st.Close()); err != nil {
		t.Fatal(err)
	}
	a.open(&varve.Options{ReadOnly: true})
	q := a.st.Admin().Quarantine()
	var list []varve.Quarantined
	for p, err := range q.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) != 3 || list[0].Name != "1-m.json" || list[0].Reason != "a test" || list[0].From != "memories/m.json" ||
		!list[0].Noted {
		t.Errorf("%+v", list)
	}
	var b bytes.Buffer
	if n, err := q.Copy(t.Context(), "1-m.json", &b); err != nil || n != int64(b.Len()) || !strings.Contains(b.String(),
		"aside") {
		t.Errorf("%d bytes, %v: %s", n, err, b.String())
	}
	if _, err := q.Copy(t.Context(), "folder", &b); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("a folder is copied: %v", err)
	}
	if _, err := q.Restore(t.Context(), "1-m.json"); !errors.Is(err, varve.ErrReadOnly) {
		t.Errorf("restored in a store that is read-only: %v", err)
	}
	if _, err := q.Drop(t.Context(), "1-m.json"); !errors.Is(err, varve.ErrReadOnly) {
		t.Errorf("dropped in a store that is read-only: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range q.All(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// A purge removes the undo file of an older version that names a purged memory, and no other.
func TestPurgeOfUndoFiles(t *testing.T) {
	t.Parallel()
	a := newAside(t)
	for _, id := range []string{"secret-one", "other"} {
		if _, err := a.st.Put(t.Context(), varve.Memory{ID: id, Content: "of " + id}); err != nil {
			t.Fatal(err)
		}
	}
	head := `{"repair":"x","when":"2025-01-01T00:00:00Z"}` + "\n"
	change := `{"n":1,"do":"set aside","path":"memories/%s.json","before":{"kept":"quarantine/%[1]s","size":1,"mtime":"2025-01-01T00:00:00Z"}}`
	kept := `{"n":1,"do":"set aside","path":"memories/copy.json","before":{"kept":"quarantine/1-copy.json","size":1,"mtime":"2025-01-01T00:00:00Z"}}`
	const one, two, three = "repair-1.undo.jsonl", "repair-2.undo.jsonl", "repair-3.undo.jsonl"
	a.put(one, head+fmt.Sprintf(change, "secret-one")+"\n"+`{"ended":true}`+"\n", "", "")
	a.put(two, head+fmt.Sprintf(change, "other")+"\n{cut", "", "")
	a.put(three, head+kept+"\n", "", "")
	a.put("1-copy.json", `{"id":"secret-one","content":"of secret-one"}`, "memories/copy.json", "")
	r, err := a.st.Admin().Purge(t.Context(), "secret-one")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{one: false, two: true, three: false, "1-copy.json": false} {
		_, err := os.Stat(filepath.Join(a.dir, "quarantine", name))
		if there := err == nil; there != want {
			t.Errorf("%s is there: %v; removed: %q", name, there, r.Removed)
		}
	}
}
