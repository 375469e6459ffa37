package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/intake"
	"github.com/varve-db/varve/importer"
	"github.com/varve-db/varve/internal/proofs"
)

// compare lets Python read the store and its source; see testdata/compare.py.
func compare(t *testing.T, source, store, form string) {
	t.Helper()
	out, err := exec.Command(python(t), filepath.Join("testdata", "compare.py"), source, store, form).CombinedOutput()
	if err != nil {
		t.Errorf("python: %v\n%s", err, out)
	}
}

func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil && os.Getenv("VARVE_CI") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip("python3 is not there")
	}
	return path
}

// TestRealImport: the stores of three other systems, whole and unchanged, and a
// second time without anything new.
func TestRealImport(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, c := range []struct {
		folder, from, form string
		memories           int
		problems           map[importer.Kind]int
	}{
		{"synthians-6ac7868", "synthians", "synthians", 358, map[importer.Kind]int{importer.KindUnindexed: 7, importer.KindGhost: 56, importer.KindCopy: 2}},
		{"vizor-sessions", "vizor", "vizor", 71, nil},
		{"lucidia-legacy", "", "synthians", 64, nil},
	} {
		if proofs.Everyday() && c.memories > 70 {
			continue // whole in .ci/run
		}
		t.Run(c.folder, func(t *testing.T) {
			source := proofs.SharedData(t, c.folder)
			before := sums(t, source)
			cl := &inProcess{t, t.TempDir()}
			args := []string{"import", source, "--store", cl.store(), "--json"}
			if c.from != "" {
				args = append(args, "--from", c.from)
			}
			var r intake.Report
			decode(t, cl.ok(args...), &r)
			if r.New != c.memories || r.Same+r.Kept+r.Replaced+r.Refused != 0 {
				t.Errorf("%d new, want %d, and nothing else: %+v", r.New, c.memories, r)
			}
			kinds := map[importer.Kind]int{}
			for _, p := range r.Problems {
				kinds[p.Kind]++
			}
			for kind, n := range c.problems {
				if kinds[kind] != n {
					t.Errorf("%d × %s, want %d", kinds[kind], kind, n)
				}
				delete(kinds, kind)
			}
			if len(kinds) > 0 {
				t.Errorf("more problems: %v", kinds)
			}
			if n := len(cl.ids()); n != c.memories {
				t.Errorf("%d memories, want %d", n, c.memories)
			}
			compare(t, source, cl.store(), c.form)
			decode(t, cl.ok(args...), &r)
			if r.New != 0 || r.Same != c.memories {
				t.Errorf("the second run: %+v", r)
			}
			compare(t, source, cl.store(), c.form)
			if out := cl.ok("verify"); !strings.Contains(out, "no damage found") {
				t.Error(out)
			}
			if !slices.Equal(sums(t, source), before) {
				t.Error("the source was changed")
			}
		})
	}
}

// TestRealUnindexed: the 7 that their index did not name are there.
func TestRealUnindexed(t *testing.T) {
	proofs.ManyProcesses(t, "a real store, whole")
	t.Parallel()
	source := proofs.SharedData(t, "synthians-6ac7868")
	cl := &inProcess{t, t.TempDir()}
	cl.ok("import", source, "--store", cl.store())
	for _, id := range []string{
		"mem_03fef7141498", "mem_1d2fa71a13e3", "mem_3dc6bcbbc384", "mem_5ff6f5b1166f", "mem_932b60b56c52", "mem_a88d2f7b9572", "mem_e9004371e349",
	} {
		cl.ok("get", id)
	}
	// Round through lines: a store made of them is equal.
	lines := filepath.Join(cl.dir, "all.jsonl")
	cl.ok("export", "--file", lines)
	copied := filepath.Join(cl.dir, "copy")
	cl.ok("import", lines, "--store", copied)
	compare(t, source, copied, "synthians")
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v: %.500s", err, text)
	}
}

// sums are names, sizes and times of a folder's files.
func sums(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	for _, path := range tree(t, dir) {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, path+" "+quoted(t, []any{info.Size(), info.ModTime()}))
	}
	return all
}
