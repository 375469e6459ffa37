//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// Answers that said another thing than what was the case.
func TestSmallAnswers(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "one", "--id", "one", "--meta", "priority=high")
	c.ok("put", "two", "--id", "two", "--meta", "priority:=5")
	refused := func(want int, says string, args ...string) {
		t.Helper()
		if code, out, errOut := c.run("", args...); code != want || !strings.Contains(errOut, says) || out != "" {
			t.Errorf("memctl %q: exit code %d: %s%s", args, code, errOut, out)
		}
	}
	const usage = 64
	refused(usage, "an id is empty; nothing was deleted", "rm", "", "one")
	refused(usage, "an id is empty", "rm", "one", "")
	c.ok("get", "one")
	for _, flag := range []string{"--category", "--key", "--prefix", "--session"} {
		for _, args := range [][]string{{"list", flag, ""}, {"export", flag, ""}, {"search", "one", flag, ""}} {
			refused(usage, flag+" is empty", args...)
		}
	}
	if out := c.ok("list", "--where", "priority>=3", "--output", "id"); out != "two\n" {
		t.Errorf("priority>=3: %q", out)
	}
	c.ok("working", "set", "version", "1.10", "--scope", "session:s")
	c.ok("working", "set", "list", `[1.10,{"a":2.0}]`, "--scope", "session:s")
	if out := c.ok("working", "get", "version", "--scope", "session:s"); out != "1.10\n" {
		t.Errorf("a value of working memory: %q", out)
	}
	if out := c.ok("working", "get", "list", "--scope", "session:s"); !strings.Contains(out, "1.10") || !strings.Contains(out, "2.0") {
		t.Errorf("a value of working memory: %q", out)
	}
	working := func(args ...string) string {
		return c.ok(slices.Concat([]string{"working"}, args, []string{"--scope", "session:s"})...)
	}
	working("task", "--description", "d", "--set", "ratio=3.50")
	working("task", "--step", "2")
	id := strings.TrimSpace(working("checkpoint", "create"))
	working("set", "version", "1.1")
	for name, out := range map[string]string{
		"task": working("task"), "export": working("export"), "a checkpoint": working("checkpoint", "show", id), "a difference": working("checkpoint", "diff", id, "--json"),
		"values as JSON": working("get", "list", "--json"), "the task as JSON": working("task", "--json"),
	} {
		if !strings.Contains(out, "1.10") && !strings.Contains(out, "3.50") || strings.Contains(out, "3.5,") || strings.Contains(out, "[1.1,{") {
			t.Errorf("%s: a number is not as it was written: %s", name, out)
		}
	}
	working("checkpoint", "restore", id)
	if out := working("get", "version"); out != "1.10\n" {
		t.Errorf("a value of a checkpoint that was restored: %q", out)
	}
	for text, says := range map[string]string{"\xff\xfea\x00": "UTF-16", "\x1f\x8b\x08\x00": "gzip"} {
		file := filepath.Join(c.dir, says)
		writeFile(t, file, text)
		refused(cli.CodeRefused, says, "put", "--file", file)
		refused(cli.CodeRefused, says, "put", "--json-input", file)
		refused(cli.CodeRefused, says, "import", file)
	}
}

// An editor that removes its file leaves none that a message could name; completion fails as every output does.
func TestSmallAnswersOfPrograms(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "one", "--id", "one")
	editor := filepath.Join(c.dir, "editor")
	writeFile(t, editor, "#!/bin/sh\nrm \"$1\"\n")
	if err := os.Chmod(editor, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "--store", c.store(), "edit", "one")
	cmd.Env = append(os.Environ(), "VISUAL="+editor)
	out, err := cmd.CombinedOutput()
	if err == nil || strings.Contains(string(out), "is kept in") || !strings.Contains(string(out), "the edited file is gone") {
		t.Errorf("edit: %v: %s", err, out)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		return // only Linux has it
	}
	defer full.Close()
	cmd = command(t, "completion", "bash")
	cmd.Stdout = full
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != cli.CodeDiskFull {
		t.Errorf("completion to a full disk: exit code %d", cmd.ProcessState.ExitCode())
	}
}
