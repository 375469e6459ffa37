package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	found, err := concurrent(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, line := range found {
		fmt.Println(line)
	}
}

// concurrent returns, sorted, a line for each test below root that starts goroutines: the folder of the package and
// the name of the test. It omits folders that have their own go.mod.
func concurrent(root string) ([]string, error) {
	packages := map[string]*calls{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, missing := os.Stat(filepath.Join(path, "go.mod"))
			if path != root && (missing == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if packages[dir] == nil {
			packages[dir] = &calls{of: map[string][]string{}, starts: map[string]bool{}}
		}
		packages[dir].add(file)
		return nil
	})
	var found []string
	for dir, c := range packages {
		for name := range c.of {
			if strings.HasPrefix(name, "Test") && name != "TestMain" && c.reach(name, map[string]bool{}) {
				found = append(found, dir+" "+name)
			}
		}
	}
	slices.Sort(found)
	return found, err
}

// calls describes the functions in the test files of one package: the names that each function mentions, and whether
// the function starts goroutines. The name of a method does not include its type.
type calls struct {
	of     map[string][]string
	starts map[string]bool
}

func (c *calls) add(file *ast.File) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		name := f.Name.Name
		c.of[name] = append(c.of[name], "")
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				c.starts[name] = true
			case *ast.SelectorExpr:
				if n.Sel.Name == "Go" { // of a sync.WaitGroup
					c.starts[name] = true
				}
			case *ast.Ident:
				c.of[name] = append(c.of[name], n.Name)
			}
			return true
		})
	}
}

func (c *calls) reach(name string, seen map[string]bool) bool {
	if c.starts[name] {
		return true
	}
	if seen[name] {
		return false
	}
	seen[name] = true
	for _, other := range c.of[name] {
		if c.of[other] != nil && c.reach(other, seen) {
			return true
		}
	}
	return false
}
