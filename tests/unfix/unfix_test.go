package unfix

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

const root = "../.."

// TestApplies: the blocks of every case are in the tree, once.
func TestApplies(t *testing.T) {
	tree := readTree(t)
	for _, c := range cases(t) {
		if _, err := tree.Apply(c); err != nil {
			t.Errorf("cases/%s.unfix: %v", c.Name, err)
		}
	}
}

// TestRows: the number of a case is a row of docs/failures.md, whose last column says yes for the rows
// that have a case, and for no other.
func TestRows(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/failures.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|.*\|(.*)\|$`).FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = strings.TrimSpace(m[2])
	}
	has := map[string]bool{}
	for _, c := range cases(t) {
		if number := strings.TrimLeft(regexp.MustCompile(`^\d+`).FindString(c.Name), "0"); number != "" {
			if _, is := rows[number]; !is {
				t.Errorf("cases/%s.unfix: docs/failures.md has no row %s", c.Name, number)
			}
			has[number] = true
		}
	}
	for number, yes := range rows {
		if (yes == "yes") != has[number] {
			t.Errorf("docs/failures.md: row %s says %q; has it a case: %v", number, yes, has[number])
		}
	}
	if len(rows) < 100 {
		t.Errorf("only %d rows: the table is not read", len(rows))
	}
}

// TestRed removes each fix, and its command must fail.
func TestRed(t *testing.T) {
	if !proofs.Long() {
		t.Skip("this takes an hour: VARVE_LONG=1 go test ./tests/unfix -timeout 2h")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh to run the commands")
	}
	tree := readTree(t)
	copies := make(chan string, runtime.GOMAXPROCS(0))
	for range cap(copies) {
		dir := t.TempDir()
		copyModule(t, dir)
		copies <- dir
	}
	for _, c := range cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			dir := <-copies
			defer func() { copies <- dir }()
			changed, err := tree.Apply(c)
			if err != nil {
				t.Fatal(err)
			}
			for name, lines := range changed {
				write(t, filepath.Join(dir, name), lines)
				defer write(t, filepath.Join(dir, name), tree[name])
			}
			judge(t, c, dir)
		})
	}
}

var failed = regexp.MustCompile(`(?m)--- FAIL|^panic:|^fatal error:|^WARNING: DATA RACE`)

func judge(t *testing.T, c *Case, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", c.Command)
	cmd.Dir = dir
	// With -trimpath the copy shares the build cache with every other copy. What is not needed to
	// see a test fail is left out of the build, which takes most of the time; without inlining it takes half.
	cmd.Env = append(os.Environ(), "VARVE_LONG=1", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath -buildvcs=false -vet=off -ldflags=-w -gcflags=github.com/varve-db/varve/...=-l")
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		t.Errorf("not noticed: %s\n%s", c.What, c.Command)
	case !failed.Match(out):
		t.Errorf("%s: no test failed, it may not build:\n%s", c.Command, out)
	default:
		t.Logf("red: %s", c.What)
	}
}

func cases(t *testing.T) []*Case {
	t.Helper()
	files, err := filepath.Glob("cases/*.unfix")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var all []*Case
	for _, file := range files {
		c, err := ReadCase(file)
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, c)
	}
	return all
}

// readTree reads the files that a case may change.
func readTree(t *testing.T) Tree {
	t.Helper()
	tree := Tree{}
	walk(t, func(name string) {
		if ext := filepath.Ext(name); ext != ".go" && ext != ".lua" {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		tree[name] = strings.Split(string(text), "\n")
	})
	return tree
}

func copyModule(t *testing.T, to string) {
	t.Helper()
	walk(t, func(name string) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// walk yields the module's regular files, except the cases themselves.
func walk(t *testing.T, yield func(name string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || filepath.ToSlash(name) == "tests/unfix") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			yield(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file string, lines []string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Error(err)
	}
}

// TestFindNeedsOnePlace: a block that is gone or that occurs twice is refused.
func TestFindNeedsOnePlace(t *testing.T) {
	tree := Tree{"a.go": {"\tif x {", "\t\treturn", "\t}"}, "b.go": {"if x {", "y()"}}
	for _, test := range []struct {
		block string
		want  string
	}{
		{"if x {\nreturn", ""},
		{"if x {", "in 2 places"},
		{"if z {", "nowhere"},
		{"if x {\nreturn\n}\n}", "nowhere"},
	} {
		_, err := tree.Apply(&Case{Pairs: []Pair{{With: strings.Split(test.block, "\n")}}})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !bytes.Contains([]byte(err.Error()), []byte(test.want))) {
			t.Errorf("%q: %v, want %q", test.block, err, test.want)
		}
	}
}
