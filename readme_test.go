package varve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// TestReadmeProgram verifies that the Go program of the README runs as it is pasted, in its own module.
func TestReadmeProgram(t *testing.T) {
	proofs.ManyProcesses(t, "it builds a program")
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```go\n")
	program, _, ended := strings.Cut(rest, "\n```")
	if !found || !ended {
		t.Fatal("README.md has no Go program")
	}
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": program + "\n", "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("mod", "init", "example.org/quickstart")
	run("mod", "edit", "-replace", "github.com/varve-db/varve="+root)
	// Not "mod tidy", which also needs the modules of the tests of each module: this needs only the modules that
	// building this module has downloaded.
	run("get", "github.com/varve-db/varve")
	if out := run("run", "."); !strings.Contains(out, "prefers short answers, with sources\n") {
		t.Errorf("it prints %q", out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "storage", "memories", "*.json"))
	if err != nil || len(files) != 1 {
		t.Errorf("%q, %v", files, err)
	}
}

// TestReadmeIsShort verifies the length: everything longer belongs in docs/.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n >= 150 {
		t.Errorf("README.md has %d lines, at most 149", n)
	}
}
