package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/served"
)

// damages are ways in which the files of a store break while it is served.
var damages = []struct {
	what string
	do   func(path string) error
}{
	// In the middle of what was written: the log ends with zeros.
	{"overwritten", func(path string) error {
		return rewrite(path, func(b []byte) {
			copy(b[len(bytes.TrimRight(b, "\x00"))/2:], bytes.Repeat([]byte{0xdb}, 64))
		})
	}},
	// What the file says is well-formed, but is not what was acknowledged.
	{"changed", func(path string) error {
		return rewrite(path, func(b []byte) { copy(b, bytes.ReplaceAll(b, []byte("text of"), []byte("TEXT of"))) })
	}},
	{"garbage", func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("garbage\x00"), 50), 0o600) }},
	{"empty", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
	{"removed", os.Remove},
	{"a folder", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }},
}

// rewrite changes the bytes of a file in place.
func rewrite(path string, change func(b []byte)) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	change(b)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Close())
}

// TestDamagedStore: whichever file of a store breaks while it is served, every request is answered, no answer has
// another text than the one that was acknowledged, and the server goes on.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "model")
	names := damagedStore(t, model)
	t.Log(names)
	for _, name := range names {
		for _, d := range damages {
			t.Run(name+"/"+d.what, func(t *testing.T) {
				t.Parallel()
				damageServed(t, model, name, d.do)
			})
		}
	}
}

const damagedNotes = 5

func damagedText(i int) string { return fmt.Sprintf("text of note %d %s", i, strings.Repeat("x", 200)) }

// damagedStore creates a store, and returns the names of its files: one of each folder, and all that are in no folder.
func damagedStore(t *testing.T, dir string) (names []string) {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range damagedNotes {
		if _, err := st.Notes().Write(t.Context(), fmt.Sprint(i, ".md"), []byte(damagedText(i))); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", i), Content: damagedText(i)}); err != nil {
			t.Fatal(err)
		}
		if i == damagedNotes/2 {
			if err := st.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		folder, ext := filepath.Dir(name), filepath.Ext(name)
		if kind := folder + ext; folder == "." || !seen[kind] {
			seen[kind] = true
			names = append(names, filepath.ToSlash(name))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

func damageServed(t *testing.T, model, name string, damage func(path string) error) {
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.CopyFS(dir, os.DirFS(model)); err != nil {
		t.Fatal(err)
	}
	v := servingIn(t, dir, &varve.Options{NoBackground: true}, func(o *Options, held *served.Store) {
		var err error
		o.MemoryStores, err = memorystores.Single(held, memorystores.Options{Caller: CallerOf, Name: "s"})
		if err != nil {
			t.Fatal(err)
		}
	})
	beta := []string{"x-api-key: all", "anthropic-beta: " + memorystores.Betas()[0]}
	list := func(query string) (status int, data []map[string]any, answer string) {
		var o struct{ Data []map[string]any }
		status, _, answer = v.do("GET", memorystores.Base+query, "", beta...)
		if err := json.Unmarshal([]byte(answer), &o); err != nil {
			t.Errorf("%s: %d %s", query, status, answer)
		}
		return status, o.Data, answer
	}
	_, stores, answer := list("")
	if len(stores) != 1 {
		t.Fatal(answer)
	}
	at := fmt.Sprint("/", stores[0]["id"], "/memories")
	_, memories, answer := list(at)
	if len(memories) != damagedNotes {
		t.Fatal(answer)
	}
	v.broken = true
	document := strings.HasPrefix(name, "notes/") || strings.HasPrefix(name, "memories/") // what it has now is its text
	acknowledged := func(answer string) {
		t.Helper()
		if !document && strings.Contains(answer, "TEXT of") {
			t.Errorf("the answer has a text that was never written: %.300s", answer)
		}
	}
	if err := damage(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
	edited := strings.HasPrefix(name, "notes/") // what is in such a file now is its text
	for range 2 {
		for _, m := range memories {
			status, _, answer := v.do("GET", memorystores.Base+at+"/"+fmt.Sprint(m["id"]), "", beta...)
			var got struct{ Path, Content string }
			if err := json.Unmarshal([]byte(answer), &got); err != nil {
				t.Errorf("%s: %d %s", m["path"], status, answer)
			}
			var i int
			_, _ = fmt.Sscanf(fmt.Sprint(m["path"]), "/%d.md", &i)
			if own := edited && fmt.Sprint("/", filepath.Base(name)) == m["path"]; status == 200 && !own &&
				got.Content != damagedText(i) {
				t.Errorf("%s: %q", m["path"], got.Content)
			}
			if strings.Contains(answer, dir) {
				t.Errorf("the answer names the folder: %s", answer)
			}
		}
		for _, query := range []string{"", at + "?view=full",
			strings.TrimSuffix(at, "/memories") + "/memory_versions?view=full"} {
			_, _, answer := list(query)
			acknowledged(answer)
		}
		status, answer := v.tool("all", "recall", `{"query":"text of note"}`)
		if status != 200 {
			t.Error(status, answer)
		}
		acknowledged(answer)
		if status, answer := v.tool("all", "remember", `{"text":"another one"}`); status != 200 {
			t.Error(status, answer)
		}
		status, _, answer = v.do("POST", memorystores.Base+at, fmt.Sprintf(`{"path":"/new%d.md","content":"new"}`,
			len(memories)), beta...)
		var made map[string]any
		if err := json.Unmarshal([]byte(answer), &made); err != nil {
			t.Errorf("%d %s", status, answer)
		}
		if status == 200 {
			status, _, answer := v.do("GET", memorystores.Base+at+"/"+fmt.Sprint(made["id"]), "", beta...)
			if status == 200 && !strings.Contains(answer, `"content":"new"`) {
				t.Errorf("%d %s", status, answer)
			}
			memories = slices.Clone(memories[:damagedNotes])
		}
	}
	if status, _, _ := v.do("GET", "/healthz", ""); status != 200 {
		t.Error(status)
	}
	status, _, answer := v.do("GET", "/readyz", "")
	if status != 200 && status != 503 || strings.Contains(answer, dir) {
		t.Error(status, answer)
	}
}
