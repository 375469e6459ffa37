package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
)

// example is a command of a console block, and what it prints.
type example struct {
	line    int // in its file
	command string
	want    []string
}

// examplesOf reads the blocks of a document that begin with ```console. In them a line that begins
// with "$ " is a command; one that ends with a backslash continues. The other lines are its output,
// stderr included. In them "…" is any text within a line, and a line of it any number of lines.
func examplesOf(t *testing.T, file string) (list []example) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in, more := false, false
	for i, line := range strings.Split(string(text), "\n") {
		last := len(list) - 1
		switch {
		case !in:
			in = line == "```console"
		case line == "```":
			in, more = false, false
		case more:
			list[last].command += "\n" + line
			more = strings.HasSuffix(line, `\`)
		case strings.HasPrefix(line, "$ "):
			list = append(list, example{line: i + 1, command: line[2:]})
			more = strings.HasSuffix(line, `\`)
		case last < 0:
			t.Fatalf("%s:%d: output before the first command", file, i+1)
		default:
			list[last].want = append(list[last].want, line)
		}
	}
	return list
}

// TestDocsExamples runs the console blocks of README.md and of docs/, those of a file one after the
// other in one shell and in an empty folder. A command that fails must be followed by echo $?, so
// that the reader sees the exit status. The embedding service of docs/howto/embeddings.md is one of
// the test's own.
func TestDocsExamples(t *testing.T) {
	proofs.ManyProcesses(t, "every command of docs/ is a process")
	if runtime.GOOS == "windows" {
		t.Skip("the examples are for a POSIX shell")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	files := []string{filepath.Join(root, "README.md")}
	if err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	service := modelService(t)
	number := 0
	for _, file := range files {
		list := examplesOf(t, file)
		number += len(list)
		if len(list) == 0 {
			continue
		}
		name, _ := filepath.Rel(root, file)
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			t.Parallel()
			for i := range list {
				list[i].command = strings.ReplaceAll(list[i].command, "http://localhost:8080", service)
			}
			runExamples(t, name, list)
		})
	}
	if number < 80 {
		t.Errorf("only %d commands: the blocks are not read", number)
	}
}

// mark ends the output of a command; no command prints it.
const mark = "\x1e"

func runExamples(t *testing.T, name string, list []example) {
	dir, home := t.TempDir(), t.TempDir()
	var script strings.Builder
	for _, e := range list {
		fmt.Fprintf(&script, "%s\nstatus=$?; printf '%s%%d%s' $status; (exit $status)\n", e.command, mark, mark)
	}
	file := filepath.Join(home, "script")
	if err := os.WriteFile(file, []byte("exec 2>&1\n"+script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", file)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "TZ=UTC", "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org"}
	out, err := cmd.Output()
	if ctx.Err() != nil {
		t.Errorf("%s: the examples did not end: %v", name, err)
	}
	parts := strings.Split(string(out), mark)
	for i, e := range list {
		if 2*i+1 >= len(parts) {
			t.Fatalf("%s:%d: %s: not run; the last output was %q", name, e.line, e.command, parts[len(parts)-1])
		}
		got := lines(parts[2*i])
		if !sameLines(lines(strings.Join(e.want, "\n")), got) {
			t.Errorf("%s:%d: %s\nprints\n%s\ninstead of\n%s", name, e.line, e.command, strings.Join(got, "\n"), strings.Join(e.want, "\n"))
		}
		status, err := strconv.Atoi(parts[2*i+1])
		if err != nil {
			t.Fatal(err)
		}
		if told := i+1 < len(list) && list[i+1].command == "echo $?"; status != 0 && !told {
			t.Errorf("%s:%d: %s\nfails with exit status %d; the next command must be echo $?, or the example be corrected:\n%s", name, e.line, e.command, status, strings.Join(got, "\n"))
		}
	}
}

// lines are those of a text, without blanks at their ends and without empty ones at its end.
func lines(text string) (list []string) {
	for _, line := range strings.Split(strings.TrimRight(text, " \t\n"), "\n") {
		list = append(list, strings.TrimRight(line, " \t"))
	}
	return list
}

// sameLines compares an output with what an example has of it.
func sameLines(want, got []string) bool {
	switch {
	case len(want) == 0:
		return len(got) == 0
	case want[0] == "…":
		return sameLines(want[1:], got) || len(got) > 0 && sameLines(want, got[1:])
	case len(got) == 0:
		return false
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want[0]), "…", ".*")
	return regexp.MustCompile("^"+pattern+"$").MatchString(got[0]) && sameLines(want[1:], got[1:])
}

// TestSameLines: an example that differs is not taken for the output.
func TestSameLines(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "", false}, {"a", "a  \n\n", true}, {"a.c", "abc", false},
		{"a…c", "abc", true}, {"a…c", "abcd", false}, {"…", "", true}, {"…", "a\nb", true},
		{"a\n…\nd", "a\nb\nc\nd", true}, {"a\n…\nd", "a\nd", true}, {"a\n…\nd", "a\nb\nc", false}, {"a …\nb", "a\nb", false},
	} {
		if got := sameLines(lines(c.want), lines(c.got)); got != c.same {
			t.Errorf("%q and %q: %v", c.want, c.got, got)
		}
	}
}

// modelService is an embedding service with two models of different dimensions.
func modelService(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Model string
			Input []string
		}
		dims := map[string]int{"all-minilm": 384, "nomic-embed-text": 768}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || dims[q.Model] == 0 {
			http.Error(w, `{"error":{"message":"model not found"}}`, http.StatusNotFound)
			return
		}
		var data []map[string]any
		for i, text := range q.Input {
			data = append(data, map[string]any{"index": i, "embedding": bag(text, dims[q.Model])})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(s.Close)
	return s.URL
}
