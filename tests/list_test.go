package tests

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("list.update", false, "write tests.list")

const list = "tests.list"

// TestList compares the tests of the module with the list, for all systems: it reads their source, since
// go test -list sees only the tests of one system.
func TestList(t *testing.T) {
	have, err := all("..")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(list, []byte(strings.Join(have, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range want {
		if !slices.Contains(have, line) {
			t.Errorf("gone: %s: if it has moved, update the list (go test ./tests -run TestList -list.update)", line)
		}
	}
	for _, line := range have {
		if !slices.Contains(want, line) {
			t.Errorf("not in the list: %s: go test ./tests -run TestList -list.update", line)
		}
	}
}

// all returns the lines of the tests below root.
func all(root string) (lines []string, err error) {
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || f.Name.Name == "TestMain" {
				continue
			}
			for _, s := range []struct{ begins, shard string }{{"Test", "daily"}, {"Fuzz", "fuzz"}, {"Benchmark", "bench"}} {
				if strings.HasPrefix(f.Name.Name, s.begins) {
					lines = append(lines, fmt.Sprintf("%-5s %s %s", s.shard, path.Clean(filepath.ToSlash(rel)), f.Name.Name))
				}
			}
		}
		return nil
	})
	slices.Sort(lines)
	return slices.Compact(lines), err
}
