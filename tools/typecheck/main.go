package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: typecheck DIR GOOS/GOARCH...")
		os.Exit(2)
	}
	failed := false
	for _, target := range os.Args[2:] {
		errs, err := check(os.Args[1], target)
		if err != nil {
			errs = append(errs, err.Error())
		}
		for _, e := range errs {
			fmt.Fprintf(os.Stderr, "%s: %s\n", target, e)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns the type errors of the packages below dir, and of their tests, when they are built for a system. The
// system has the form GOOS/GOARCH.
func check(dir, target string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	goos, goarch, ok := strings.Cut(target, "/")
	if !ok {
		return nil, fmt.Errorf("want GOOS/GOARCH")
	}
	list, err := packages.Load(&packages.Config{
		// Export data would have to be compiled; so the packages that are imported are read as well.
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes,
		Dir:   dir,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS="),
		Tests: true,
		// What a function of an imported package does is not looked at.
		ParseFile: func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
			f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
			if f != nil && !strings.HasPrefix(name, dir+string(filepath.Separator)) {
				for _, d := range f.Decls {
					if fn, ok := d.(*ast.FuncDecl); ok {
						fn.Body = nil
					}
				}
			}
			return f, err
		},
	}, "./...")
	if err != nil {
		return nil, err
	}
	var errs []string
	seen := map[string]bool{} // the list has a package twice: with and without its tests
	for _, p := range list {
		if strings.HasSuffix(p.ID, ".test") {
			continue // the generated program that runs the tests of a package
		}
		for _, e := range p.Errors {
			if text := e.Error(); !seen[text] {
				seen[text] = true
				errs = append(errs, text)
			}
		}
	}
	if len(list) == 0 {
		errs = append(errs, "there are no Go packages below "+dir)
	}
	return errs, nil
}
