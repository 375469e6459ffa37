package importer

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/assembly"
)

// got is everything that a run yields.
type got struct {
	items      []Item // memories
	assemblies []Item
	problems   []Problem
	report     Report
}

func (g got) ids() []string {
	var ids []string
	for _, it := range g.items {
		ids = append(ids, it.ID)
	}
	slices.Sort(ids)
	return ids
}

func (g got) item(id string) Item {
	for _, it := range g.items {
		if it.ID == id {
			return it
		}
	}
	return Item{}
}

// of returns the problems of a kind.
func (g got) of(k Kind) (out []Problem) {
	for _, p := range g.problems {
		if p.Kind == k {
			out = append(out, p)
		}
	}
	return out
}

// expect fails the test unless there are exactly these problems, each as "kind path id", in any order.
func (g got) expect(t *testing.T, want ...string) {
	t.Helper()
	var have []string
	for _, p := range g.problems {
		s := fmt.Sprintf("%s %s %s", p.Kind, p.Path, p.ID)
		if p.Taken {
			s += " taken"
		}
		have = append(have, strings.Join(strings.Fields(s), " "))
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("problems:\n  %s\nwant:\n  %s\nin full: %v", strings.Join(have, "\n  "), strings.Join(want, "\n  "), g.problems)
	}
}

func (g got) expectIDs(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	if ids := g.ids(); !slices.Equal(ids, want) {
		t.Errorf("ids %q, want %q", ids, want)
	}
}

// drain runs through a source, and checks that every item has the promised properties, and that the
// source is unchanged.
func drain(t *testing.T, path string, format Format, opts Options) got {
	t.Helper()
	before := fingerprint(t, path)
	src, err := Open(path, format, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	g := drainSource(t, src)
	if after := fingerprint(t, path); after != before {
		t.Errorf("the source was changed:\n%s\nafter:\n%s", before, after)
	}
	return g
}

func drainSource(t *testing.T, src *Source) got {
	t.Helper()
	var g got
	seen := map[string]bool{}
	for e, err := range src.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Problem != nil {
			if e.Problem.Reason == "" || e.Problem.Kind == "" {
				t.Errorf("a problem that says nothing: %+v", e.Problem)
			}
			g.problems = append(g.problems, *e.Problem)
			continue
		}
		key := fmt.Sprint(e.Item.Assembly, e.Item.ID)
		if seen[key] {
			t.Errorf("id %q was yielded twice", e.Item.ID)
		}
		seen[key] = true
		if e.Item.Assembly {
			g.assemblies = append(g.assemblies, *e.Item)
			if !json.Valid(e.Item.JSON) {
				t.Errorf("%s: %s", e.Item.Path, e.Item.JSON)
			}
			if a, err := assembly.Decode(e.Item.JSON, assembly.DecodeOptions{}); err == nil && a.ID != e.Item.ID {
				t.Errorf("%s: id %q in the object, %q in the item", e.Item.Path, a.ID, e.Item.ID)
			}
			continue
		}
		if len(g.assemblies) > 0 && src.Format() == Synthians {
			t.Errorf("the memory %s came behind an assembly", e.Item.ID)
		}
		var m map[string]any
		if err := json.Unmarshal(e.Item.JSON, &m); err != nil {
			t.Errorf("%s: %v", e.Item.Path, err)
		} else if m["id"] != e.Item.ID {
			t.Errorf("%s: id %v in the object, %q in the item", e.Item.Path, m["id"], e.Item.ID)
		}
		g.items = append(g.items, *e.Item)
	}
	g.report = src.Report()
	return g
}

func fingerprint(t *testing.T, root string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			fmt.Fprintln(&out, path)
			return err
		}
		var hash [32]byte
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			hash = sha256.Sum256(data)
		}
		fmt.Fprintf(&out, "%s %v %v %x\n", path, info.ModTime(), info.Mode(), hash[:8])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// tree writes files, name and content in turn, into a new folder.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, filepath.FromSlash(files[i]))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// mem returns the content of a memory file.
func mem(id string) string { return fmt.Sprintf(`{"id": %q, "content": "about %s"}`, id, id) }
