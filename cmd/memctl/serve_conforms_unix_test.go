//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// The judges of the protocol. The release of the conformance suite knows the versions up to 2025-11-25, and the next
// one 2026-07-28.
var judges = []string{"@modelcontextprotocol/conformance@0.1.16",
	"conformance-next@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0"}

// suites are the programs of the conformance suite with their arguments, by the names that the baseline has.
var suites = []struct{ name, program, args string }{
	{"0.1.16", "@modelcontextprotocol/conformance", "--suite all"},
	{"2026-07-28", "conformance-next", "--requirements 2026-07-28"},
}

// TestServeConforms has npm's conformance suite and the command line of the MCP Inspector judge memctl serve. The file
// testdata/mcp/conformance.txt has the checks that fail, with the reasons.
func TestServeConforms(t *testing.T) {
	proofs.ManyProcesses(t, "about 10 processes of node")
	t.Parallel()
	packages := judges
	install := newNode(t)
	if install != "" {
		packages = append(slices.Clone(judges), install)
	}
	root := npmInstalled(t, "npm-conformance-0.1.16-0.2.0-alpha.12-2.12.0", packages...)
	node := "node"
	if install != "" {
		name, _, _ := strings.Cut(install, "@")
		node = filepath.Join(root, "node_modules", name, "bin", "node")
	}
	modules := filepath.Join(root, "node_modules")
	s := startServing(t, t.TempDir(), "--tools", "all")
	for _, suite := range suites {
		t.Run(suite.name, func(t *testing.T) {
			out := t.TempDir()
			preload, err := filepath.Abs(filepath.Join("testdata", "mcp", "token.mjs"))
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--import", preload, filepath.Join(modules, suite.program, "dist", "index.js"),
				"server", "--url", s.url, "--output-dir", out}, strings.Fields(suite.args)...)
			cmd := exec.CommandContext(t.Context(), node, args...)
			cmd.Env = append(os.Environ(), "VARVE_TOKEN="+s.token)
			said, _ := cmd.CombinedOutput() // it exits with 1 because checks fail
			failed, passed := judged(t, out)
			want, passes := baseline(t, suite.name)
			for _, check := range failed {
				if !slices.Contains(want, check.name) {
					t.Errorf("%s fails: %s", check.name, check.why)
				}
			}
			for _, name := range want {
				if !slices.ContainsFunc(failed, func(c check) bool { return c.name == name }) {
					t.Errorf("%s does not fail: remove it from the baseline", name)
				}
			}
			if passed != passes {
				t.Errorf("%d checks pass, the baseline has %d", passed, passes)
			}
			if t.Failed() {
				t.Logf("%.20000s", said)
			}
		})
	}
	t.Run("inspector", func(t *testing.T) {
		program := filepath.Join(modules, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
		inspect := func(token string, args ...string) (string, int) {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), node, append([]string{program, "--cli", s.url, "--transport", "http",
				"--stored-auth-only", "--header", "Authorization: Bearer " + token, "--method"}, args...)...)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
			out, _ := cmd.CombinedOutput()
			return string(out), cmd.ProcessState.ExitCode()
		}
		contains := func(want int, part, token string, args ...string) {
			t.Helper()
			if out, code := inspect(token, args...); code != want || !strings.Contains(out, part) {
				t.Errorf("%q: exit status %d, want %d, and %q in:\n%s", args, code, want, part, out)
			}
		}
		contains(0, `"name": "recall"`, s.token, "tools/list", "--strict")
		contains(0, "remembered [", s.token, "tools/call", "--tool-name", "remember",
			"--tool-arg", "text=Ada prefers short answers")
		contains(0, "] Ada prefers short answers", s.token, "tools/call", "--tool-name", "recall",
			"--tool-arg", "query=answers")
		contains(0, `"uri": "memory://knowledge-graph"`, s.token, "resources/list")
		// 3: authorization
		contains(3, "no valid token: send the header Authorization: Bearer TOKEN", "wrong", "tools/list")
	})
}

// newNode returns the npm package of Node.js 22, which the conformance suite needs. It returns "" if the installed
// Node.js is not older, or if none is installed: npmInstalled then skips the test and names what is missing.
func newNode(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("node", "--version").Output()
	if err != nil {
		return ""
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	if n, err := strconv.Atoi(major); err == nil && n >= 22 {
		return ""
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if arch == "" || runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skipf("the conformance suite needs Node.js 22, here is %s", out)
	}
	return fmt.Sprintf("node-%s-%s@22.23.5", runtime.GOOS, arch)
}

type check struct{ name, why string }

var resultFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT`)

// judged returns the checks that failed or warned, and the number of those that passed, from a folder of results.
func judged(t *testing.T, dir string) (failed []check, passed int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no results: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(b, &checks); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		scenario := resultFolder.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if scenario == nil {
			t.Fatalf("no scenario: %s", file)
		}
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				passed++
			case "FAILURE", "WARNING":
				failed = append(failed, check{scenario[1] + " " + c.ID, c.ErrorMessage})
			}
		}
	}
	return failed, passed
}

// baseline returns the checks of a suite that are expected to fail, and the number of those that pass.
func baseline(t *testing.T, suite string) (failing []string, passing int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "mcp", "conformance.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), suite+" ")
		if !ok {
			continue
		}
		if n, ok := strings.CutPrefix(line, "passing "); ok {
			if passing, err = strconv.Atoi(n); err != nil {
				t.Fatal(err)
			}
			continue
		}
		failing = append(failing, line)
	}
	return failing, passing
}
