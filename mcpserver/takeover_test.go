package mcpserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
)

func take(t *testing.T, st *varve.Store, path string) *Taken {
	t.Helper()
	taken, err := TakeOver(t.Context(), st, path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The file is read once, its order kept, bad lines kept aside, and left as it is.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "memory.jsonl")
	text := "\xef\xbb\xbf" + strings.Join([]string{
		`{"type":"entity","name":"Zoë","entityType":"person","observations":["a"],"confidence":0.5}`,
		`{"type":"entity","name":"Ada","entityType":"person","observa`, // torn
		`{"type":"relation","from":"Zoë","to":"Ada","relationType":"knows"}`,
		``,
		`{"type":"entity","name":"Bob","entityType":"person","observations":[]}`,
		`{"type":"entity","name":"Zoë","entityType":"person","observations":["a","b"]}`, // again
		`{"type":"entity","name":"Bob","entityType":"robot","observations":["c"]}`,      // with another type
		`{"type":"relation","from":"Zoë","to":"Ada","relationType":"knows"}`,
		"\xff",
		`{"type":"weather"}`,
	}, "\n")
	st := openStore(t, filepath.Join(dir, "s"), nil)
	if taken := take(t, st, path); taken.Before || taken.Entities != 0 {
		t.Errorf("there is no file: %+v", taken)
	}
	write(t, path, text)
	taken := take(t, st, path)
	if taken.Before || taken.Entities != 2 || taken.Relations != 1 || len(taken.Aside) != 4 {
		t.Errorf("%+v", taken)
	}
	c := connect(t, st, Options{}, nil)
	c.want("read_graph", `{}`, `{"entities":[{"name":"Zoë","entityType":"person","observations":["a","b"]},{"name":"Bob","entityType":"person","observations":["c"]}],
		"relations":[{"from":"Zoë","to":"Ada","relationType":"knows"}]}`)
	m, err := st.Get(t.Context(), takenID)
	if err != nil || len(m.Metadata["aside"].([]any)) != 4 || !strings.Contains(fmt.Sprint(m.Metadata["aside"]), `"name":"Ada","entityType":"person","observa`) {
		t.Error(m.Metadata, err)
	}
	if m, err := st.Get(t.Context(), "entity:Zoë"); err != nil || fmt.Sprint(m.Metadata["extra"]) != "map[confidence:0.5]" {
		t.Error(m.Metadata, err)
	}
	// What is deleted since does not come back, also when the file grows.
	c.call("delete_entities", `{"entityNames":["Bob"]}`)
	if taken := take(t, st, path); !taken.Before || taken.Changed {
		t.Errorf("%+v", taken)
	}
	write(t, path, text+"\n"+`{"type":"entity","name":"New","entityType":"t","observations":[]}`)
	if taken := take(t, st, path); !taken.Before || !taken.Changed {
		t.Errorf("%+v", taken)
	}
	if _, err := st.Get(t.Context(), "entity:Bob"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), text) {
		t.Error("the file was changed", err)
	}
	if _, err := TakeOver(t.Context(), openStore(t, filepath.Join(dir, "other"), nil), dir, time.Now()); !errors.Is(err, varve.ErrInvalid) {
		t.Error(err)
	}
}

// A line that is too large for a memory, or garbage of any size, keeps nobody from being
// served.
func TestTakeOverTooLarge(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "memory.jsonl")
	large := strings.Repeat("x", 17<<20)
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, `{"type":"entity","name":"e%d","entityType":"t","observations":["o"]}`+"\n", i)
		switch i {
		case 7:
			text.WriteString(`{"type":"entity","name":"large","entityType":"t","observations":["` + large + "\"]}\n")
		case 9:
			text.WriteString(large + "\n" + strings.Repeat(strings.Repeat("\x01", 1000)+"\n", 5000))
		}
	}
	text.WriteString(`{"type":"relation","from":"e1","to":"e2","relationType":"` + large + `"}`)
	write(t, path, text.String())
	st := openStore(t, filepath.Join(dir, "s"), nil)
	taken := take(t, st, path)
	if taken.Entities != 20 || taken.Relations != 0 || len(taken.Aside) != 5003 {
		t.Errorf("%d entities, %d relations, %d aside", taken.Entities, taken.Relations, len(taken.Aside))
	}
	if n, err := st.Count(t.Context(), varve.WithPrefix("entity")); n != 20 || err != nil {
		t.Error(n, err)
	}
	m, err := st.Get(t.Context(), takenID)
	if err != nil {
		t.Fatal(err)
	}
	if first := m.Metadata["aside"].([]any)[0].(map[string]any); first["line"] != 9.0 || len(first["text"].(string)) != asideText {
		t.Error(first["line"], first["reason"])
	}
	if taken := take(t, st, path); !taken.Before || taken.Changed {
		t.Errorf("%+v", taken)
	}
}

// What a commit cannot have at once is taken over in parts, also where most of it are
// members that the reference server does not know.
func TestTakeOverInParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "memory.jsonl")
	var text strings.Builder
	entity := func(name string, numbers int) {
		fmt.Fprintf(&text, `{"type":"entity","name":"%s","entityType":"t","observations":[],"embedding":[1`, name)
		for range numbers {
			fmt.Fprint(&text, ",", rand.Float64())
		}
		text.WriteString("]}\n")
	}
	for i := range 50 {
		entity(fmt.Sprint("e", i), 100)
		if i == 20 {
			entity("large", 10_000)
		}
	}
	write(t, path, text.String())
	st := openStore(t, filepath.Join(dir, "s"), &varve.Options{SegmentSize: 64 << 10})
	taken := take(t, st, path)
	if taken.Entities != 50 || len(taken.Aside) != 1 || taken.Aside[0].Line != 22 {
		t.Errorf("%d entities, %d aside", taken.Entities, len(taken.Aside))
	}
	if n, err := st.Count(t.Context(), varve.WithPrefix("entity")); n != 50 || err != nil {
		t.Error(n, err)
	}
}

// Servers that start at once take the file over once; one whose transactions are
// interrupted is finished by the next.
func TestTakeOverTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "memory.jsonl")
	var text strings.Builder
	const n = takeLines + 7
	for i := range n {
		fmt.Fprintf(&text, `{"type":"entity","name":"e%04d","entityType":"t","observations":[]}`+"\n", n-i)
	}
	write(t, path, text.String())
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	whole := make(chan *Taken, 4)
	var all sync.WaitGroup
	for range 4 {
		st := openStore(t, filepath.Join(dir, "s"), nil)
		all.Go(func() {
			taken, err := TakeOver(t.Context(), st, path, time.Now().Add(-time.Duration(rand.IntN(int(time.Minute)))))
			if err != nil {
				t.Error(err)
				return
			}
			whole <- taken
			// From now on a client may delete: what is gone stays gone.
			if err := st.Delete(t.Context(), "entity:e0001"); err != nil && !errors.Is(err, varve.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(whole)
	finished := 0
	for taken := range whole {
		if !taken.Before {
			finished++
		}
	}
	st := openStore(t, filepath.Join(dir, "s"), nil)
	if count, err := st.Count(t.Context(), varve.WithPrefix("entity")); count != n-1 || err != nil || finished != 1 {
		t.Errorf("%d entities of %d, %v; %d took it over", count, n-1, err, finished)
	}
	// In the order of the file, whoever stored which part.
	c := connect(t, st, Options{}, nil)
	_, graph, _ := c.call("read_graph", `{}`)
	for i, e := range graph.(map[string]any)["entities"].([]any) {
		if name := e.(map[string]any)["name"]; name != fmt.Sprintf("e%04d", n-i) {
			t.Fatalf("%d is %v", i, name)
		}
	}
	// Interrupted: some are there, the memory that says that it is done is not.
	other := openStore(t, filepath.Join(dir, "o"), nil)
	if _, err := other.Put(t.Context(), varve.Memory{ID: "entity:e0005", Content: "mine"}); err != nil {
		t.Fatal(err)
	}
	if taken := take(t, other, path); taken.Before {
		t.Error(taken)
	}
	if m, err := other.Get(t.Context(), "entity:e0005"); err != nil || m.Content != "mine" {
		t.Error(m, err)
	}
	if count, err := other.Count(t.Context(), varve.WithPrefix("entity")); count != n || err != nil {
		t.Error(count, err)
	}
}

// What says nothing is not taken over for good; what was is never asked for again.
func TestTakeOverLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "memory.jsonl")
	st := openStore(t, filepath.Join(dir, "s"), nil)
	const ada = `{"type":"entity","name":"Ada","entityType":"t","observations":[]}`
	for _, text := range []string{"", "\n \n", "\xef\xbb\xbf"} {
		write(t, path, text)
		if taken := take(t, st, path); taken.Before {
			t.Errorf("%q: %+v", text, taken)
		}
	}
	write(t, path, ada+"\n"+`{"type":"entity","name":"Bob","entityType":"t","observations":[]}`)
	if _, err := st.Put(t.Context(), varve.Memory{ID: "entity:Bob", Content: "mine"}); err != nil {
		t.Fatal(err)
	}
	if taken := take(t, st, path); taken.Before || taken.Entities != 2 || taken.There != 1 {
		t.Errorf("%+v", taken)
	}
	same := func(changed bool, what string) {
		t.Helper()
		if taken := take(t, st, path); !taken.Before || taken.Changed != changed {
			t.Errorf("%s: %+v", what, taken)
		}
	}
	same(false, "nothing has happened")
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	same(false, "copied")
	write(t, path, strings.ReplaceAll(ada, "Ada", "Eve")+"\n"+`{"type":"entity","name":"Bob","entityType":"t","observations":[]}`)
	same(true, "as long, and another")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	same(false, "a folder")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	same(false, "gone")
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{other, filepath.Join(dir, "none")} {
		there, err := CanTakeOver(path)
		var source *SourceError
		if there || errors.As(err, &source) != (path == other) || source != nil && (source.Path != other || !errors.Is(err, varve.ErrInvalid)) {
			t.Errorf("%s: %v, %v", path, there, err)
		}
	}
}

// The old server, which may run still, empties its file and writes it again.
func TestTakeOverWhileWritten(t *testing.T) {
	t.Parallel()
	whole := `{"type":"entity","name":"a","entityType":"t","observations":[]}` + "\n" + `{"type":"entity","name":"b","entityType":"t","observations":[]}`
	for _, half := range []int{0, 80} {
		dir := t.TempDir()
		path := filepath.Join(dir, "memory.jsonl")
		st := openStore(t, filepath.Join(dir, "s"), nil)
		write(t, path, whole[:half])
		var writing sync.WaitGroup
		timer := time.AfterFunc(2*settlePause, func() {
			defer writing.Done()
			write(t, path, whole)
		})
		writing.Add(1)
		taken := take(t, st, path)
		if timer.Stop() {
			writing.Done()
		}
		writing.Wait()
		if taken.Entities != 2 || len(taken.Aside) != 0 || taken.size != int64(len(whole)) {
			t.Errorf("half written, %d bytes: %+v", half, taken)
		}
	}
}
