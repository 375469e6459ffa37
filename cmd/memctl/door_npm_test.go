package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
)

// TestDoor goes from an empty home to an agent that remembers by what the README says alone: its
// command builds memctl, its JSON is the configuration, and the TypeScript SDK has the place of the
// agent, which kills the server and asks the next one.
func TestDoor(t *testing.T) {
	proofs.ManyProcesses(t, "it builds memctl and starts node")
	if runtime.GOOS == "windows" {
		t.Skip("VARVE_LONG=1 runs it elsewhere: SIGKILL")
	}
	t.Parallel()
	npm := npmRoot(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```json\n")
	config, _, found := strings.Cut(rest, "\n```")
	install := ""
	for line := range strings.Lines(string(readme)) {
		if strings.HasPrefix(line, "go install ") {
			install, _, _ = strings.Cut(line, "#")
		}
	}
	if !found || install == "" {
		t.Fatal("README.md does not say how to install memctl, or how to configure an agent")
	}
	began := time.Now()
	home := t.TempDir()
	env := append(os.Environ(), "HOME="+home, "XDG_DATA_HOME=", "XDG_STATE_HOME=", "GOBIN="+filepath.Join(home, "bin"), "PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"))
	for _, kept := range []string{"GOCACHE", "GOMODCACHE", "GOENV"} { // of the user who builds; the home is empty
		out, err := exec.Command("go", "env", kept).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, kept+"="+strings.TrimSpace(string(out)))
	}
	build := exec.CommandContext(t.Context(), "sh", "-c", install)
	build.Dir, build.Env = root, env
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", install, err, out)
	}
	installed := time.Since(began)
	file := filepath.Join(home, ".cursor", "mcp.json")
	writeFile(t, file, config)
	script, err := filepath.Abs(filepath.Join("testdata", "mcp", "agent.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.CommandContext(t.Context(), "node", script, quoted(t, map[string]string{
		"root": npm, "config": file, "text": "Ada prefers short answers", "query": "answers",
	}))
	agent.Dir, agent.Env, agent.Stderr = home, env, os.Stderr
	out, err := agent.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var answer struct {
		Tools    []string
		Recalled struct {
			IsError bool
			Content []struct{ Text string }
		}
		Ms int
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	if r := answer.Recalled; len(answer.Tools) != 8 || r.IsError || len(r.Content) == 0 || !strings.Contains(r.Content[0].Text, "Ada prefers short answers") {
		t.Errorf("%s", out)
	}
	// And a person finds it, where the README says that it is.
	files, err := filepath.Glob(filepath.Join(home, ".local", "share", "varve", "memory", "memories", "*.json"))
	if runtime.GOOS == "linux" && (err != nil || len(files) != 1) {
		t.Errorf("files: %q, %v", files, err)
	}
	t.Logf("install %v; the agent's two servers, one killed, %d ms", installed.Round(time.Millisecond), answer.Ms)
}
