package fuzz

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/varve-db/varve/internal/vfs/sim"
)

// reached collects the call sites that the tests of this run reached.
var reached struct {
	mu sync.Mutex
	at map[string]bool
}

func reach(c sim.Coverage) {
	reached.mu.Lock()
	defer reached.mu.Unlock()
	if reached.at == nil {
		reached.at = map[string]bool{}
	}
	for at := range c {
		if at.Kind.Changes() {
			reached.at[at.Site] = true
		}
	}
}

// changing are the methods and functions of package vfs that change something.
var changing = []string{"WriteAt", "Truncate", "Sync", "Datasync", "SetMtime", "SetMode", "Rename", "RenameNew",
	"Exchange", "Link", "Remove", "Mkdir", "SyncDir", "OpenLock", "Store", "CompareAndSwap", "WriteDurable", "MkdirAll"}

// reportReached names the call sites of the engine that change something and were not reached by the
// tests that ran before. It is a list for readers, not a verdict: some sites belong to damage, or to
// what no workload does yet.
func reportReached() error {
	if len(reached.at) == 0 {
		return nil
	}
	var missing []string
	all := 0
	for _, dir := range []string{"..", "../wal", "../index", "../index/table", "../internal/docfile", "../repair"} {
		err := calls(dir, func(site, what string) {
			all++
			if !reached.at[site] {
				missing = append(missing, site+" "+what)
			}
		})
		if err != nil {
			return err
		}
	}
	slices.Sort(missing)
	fmt.Printf("%d call sites that change something in the source, %d not reached:\n\t%s\n", all, len(missing), strings.Join(missing, "\n\t"))
	return nil
}

// calls finds such calls in the source, by name: some are not of package vfs.
func calls(dir string, found func(site, what string)) error {
	set := token.NewFileSet()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, filepath.Join(dir, e.Name()), nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := c.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(changing, s.Sel.Name) {
				return true
			}
			word := s.Sel.Name == "Store" || s.Sel.Name == "CompareAndSwap"
			if word && !strings.Contains(exprText(s.X), "shared") && exprText(s.X) != "p" {
				return true // an atomic of our own
			}
			if s.Sel.Name == "Truncate" && len(c.Args) == 1 && strings.HasPrefix(exprText(c.Args[0]), "time.") {
				return true
			}
			at := set.Position(s.Sel.Pos())
			found(fmt.Sprintf("%s/%s:%d", filepath.Base(abs), filepath.Base(at.Filename), at.Line), s.Sel.Name)
			return true
		})
	}
	return nil
}

func exprText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return exprText(e.X) + "." + e.Sel.Name
	}
	return ""
}
