package varve_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// TestDocsNameCases verifies that every command in the tables of docs/ runs a case that exists, with flags that its
// package has.
func TestDocsNameCases(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	commands, names := 0, 0
	command := regexp.MustCompile("`go test ([^`]+)`")
	named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z0-9]\w+`)
	all := map[string]bool{}
	type found struct {
		list  []string
		flags string
	}
	seen := map[string]found{}
	cases := func(dir string) (list []string, flags string) {
		dir = filepath.Clean(dir)
		f, ok := seen[dir]
		if !ok {
			f.list, f.flags = testCases(t, dir)
			seen[dir] = f
		}
		for _, name := range f.list {
			all[name] = true
		}
		return f.list, f.flags
	}
	if err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			if d.Name() == "testdata" || path != "." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			cases(path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"docs/failures.md", "docs/track-record.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if file == "docs/failures.md" {
			for i := 1; i <= 84; i++ { // the rows that the issues cite
				if !strings.Contains(string(text), fmt.Sprintf("\n| %d |", i)) {
					t.Errorf("%s has no row %d", file, i)
				}
			}
		}
		for n, line := range strings.Split(string(text), "\n") {
			for _, name := range named.FindAllString(line, -1) {
				names++
				known := all[name]
				for have := range all { // a prefix is a pattern that matches several
					known = known || strings.HasPrefix(have, name)
				}
				if !known {
					t.Errorf("%s:%d: there is no %s", file, n+1, name)
				}
			}
			for _, m := range command.FindAllStringSubmatch(line, -1) {
				commands++
				if why := runs(m[1], cases); why != "" {
					t.Errorf("%s:%d: go test %s: %s", file, n+1, m[1], why)
				}
			}
		}
	}
	t.Logf("%d commands, %d names", commands, names)
	if commands < 100 {
		t.Errorf("only %d commands: the tables are not read", commands)
	}
}

// runs returns what is wrong with a command.
func runs(command string, cases func(dir string) ([]string, string)) string {
	words := strings.Fields(strings.NewReplacer(`\|`, "|", `"`, "", "'", "").Replace(command))
	var dirs, patterns []string
	var flags []string
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-run" || w == "-fuzz":
			if i++; i < len(words) {
				patterns = strings.Split(words[i], "|")
			}
		case strings.HasPrefix(w, "-"):
			flags = append(flags, strings.TrimPrefix(strings.SplitN(w, "=", 2)[0], "-"))
		case strings.HasPrefix(w, "."):
			dirs = append(dirs, below(w)...)
		}
	}
	if len(dirs) == 0 {
		return "it names no package"
	}
	met, declared := make([]bool, len(patterns)), ""
	for _, dir := range dirs {
		list, own := cases(dir)
		declared += own
		for i, p := range patterns {
			p, _, _ = strings.Cut(p, "/")
			re, err := regexp.Compile(p)
			if err != nil {
				return err.Error()
			}
			for _, name := range list {
				met[i] = met[i] || re.MatchString(name)
			}
		}
	}
	for i, ok := range met {
		if !ok {
			return "nothing there is called " + patterns[i]
		}
	}
	for _, f := range flags {
		if !strings.Contains(declared, " "+f+" ") && f != "v" && f != "bench" && f != "count" {
			return "nothing there has the flag " + f
		}
	}
	return ""
}

// below returns the folders that a package pattern names.
func below(pattern string) []string {
	root, all := strings.CutSuffix(pattern, "/...")
	if !all {
		return []string{pattern}
	}
	var dirs []string
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	return dirs
}

// testCases returns the cases of a package, and its tests' flags between spaces.
func testCases(t *testing.T, dir string) (list []string, flags string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	flags = " "
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && (strings.HasPrefix(n.Name.Name, "Test") || strings.HasPrefix(n.Name.Name, "Fuzz")) {
					list = append(list, n.Name.Name)
				}
			case *ast.CallExpr:
				s, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || len(n.Args) < 3 {
					break
				}
				lit, isLit := n.Args[0].(*ast.BasicLit)
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "flag" && isLit {
					flags += strings.Trim(lit.Value, `"`) + " "
				}
			}
			return true
		})
	}
	return list, flags
}
