//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// webServer is memctl serve as a process.
type webServer struct {
	t     *testing.T
	args  []string
	env   []string
	token string

	mu  sync.Mutex
	cmd *exec.Cmd
	url string // with /mcp
}

// startServing makes a token, and starts memctl serve for a store on a free port.
func startServing(t *testing.T, dir string, more ...string) *webServer {
	t.Helper()
	return startServingIn(t, dir, nil, more...)
}

// startServingIn is startServing with further variables.
func startServingIn(t *testing.T, dir string, env []string, more ...string) *webServer {
	t.Helper()
	return startServer(t, dir, env, append([]string{"--store", filepath.Join(dir, "s")}, more...)...)
}

// startServer is startServingIn with flags that say what is served.
func startServer(t *testing.T, dir string, env []string, flags ...string) *webServer {
	t.Helper()
	memctl := memctlBinary(t)
	s := &webServer{t: t, env: append(os.Environ(), "VARVE_STORE=", "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME="),
		args: append([]string{memctl, "serve", "--addr", "127.0.0.1:0"}, flags...)}
	add := exec.Command(memctl, "serve", "token", "add", "laptop")
	add.Env = s.env
	out, err := add.Output()
	if err != nil {
		t.Fatal(err)
	}
	s.token = strings.TrimSpace(string(out))
	s.env = append(s.env, env...)
	s.start()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	return s
}

// start starts the process; the next ones listen on the port of the first.
func (s *webServer) start() {
	s.t.Helper()
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Env = s.env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if _, url, ok := strings.Cut(lines.Text(), "s connect to "); ok {
			s.mu.Lock()
			s.cmd, s.url = cmd, url
			s.mu.Unlock()
			addr := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
			for i, arg := range s.args {
				if arg == "--addr" {
					s.args[i+1] = addr
				}
			}
			go func() { _, _ = io.Copy(io.Discard, stderr) }() // until the process ends
			return
		}
	}
	_ = cmd.Wait()
	s.t.Fatalf("memctl serve did not start:\n%s", said.String())
}

// end ends the process by a signal, and returns its exit status.
func (s *webServer) end(by os.Signal) int {
	s.mu.Lock()
	cmd := s.cmd
	s.cmd = nil
	s.mu.Unlock()
	if cmd == nil {
		return 0
	}
	_ = cmd.Process.Signal(by)
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// call calls a tool; it returns the text of the result.
func (s *webServer) call(ctx context.Context, client *http.Client, tool string, args any) (string, error) {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": args}})
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	url := s.url
	s.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || bytes.Contains(text, []byte(`"isError":true`))) {
		err = fmt.Errorf("status %d", res.StatusCode)
	}
	return string(text), err
}

// 50 clients write beside a server that is killed again and again: what was acknowledged is there.
func TestServeKilled(t *testing.T) {
	proofs.ManyProcesses(t, "a server that is killed")
	t.Parallel()
	dir := t.TempDir()
	s := startServing(t, dir)
	const clients, kills = 50, 5
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	began := make(chan struct{}, 1)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
			defer client.CloseIdleConnections()
			for n := 0; ctx.Err() == nil; n++ {
				text := fmt.Sprintf("client %d says %d", i, n)
				if _, err := s.call(ctx, client, "remember", map[string]any{"text": text}); err == nil {
					mu.Lock()
					acknowledged[text] = true
					mu.Unlock()
					select {
					case began <- struct{}{}:
					default:
					}
				} else {
					time.Sleep(10 * time.Millisecond) // the server is gone; it is asked again
				}
			}
		})
	}
	for range kills {
		mu.Lock()
		had := len(acknowledged)
		mu.Unlock()
		for more := 0; more < 200; { // some work between two kills
			<-began
			mu.Lock()
			more = len(acknowledged) - had
			mu.Unlock()
		}
		s.end(syscall.SIGKILL)
		s.start()
	}
	stop()
	all.Wait()
	if code := s.end(syscall.SIGTERM); code != cli.CodeOK {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	out, err := exec.Command(memctlBinary(t), "list", "--store", filepath.Join(dir, "s"), "-o", "jsonl", "--limit",
		"0").Output()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for line := range bytes.Lines(out) {
		var m struct{ Content string }
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		there[m.Content] = true
	}
	lost := 0
	for text := range acknowledged {
		if !there[text] {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged memories are lost", lost, len(acknowledged))
	}
	t.Logf("%d acknowledged, %d kills", len(acknowledged), kills)
}

// A token that is removed is refused by a server that runs, and one that is added is accepted.
func TestServeTokens(t *testing.T) {
	proofs.ManyProcesses(t, "memctl serve is a process")
	t.Parallel()
	dir := t.TempDir()
	s := startServing(t, dir)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	if text, err := s.call(t.Context(), client, "remember", map[string]any{"text": "one"}); err != nil {
		t.Fatal(text, err)
	}
	remove := exec.Command(s.args[0], "serve", "token", "remove", "laptop")
	remove.Env = s.env
	if out, err := remove.CombinedOutput(); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	if text, err := s.call(t.Context(), client, "recall", map[string]any{"query": "one"}); err == nil {
		t.Error("a removed token is accepted:", text)
	}
	log := exec.Command(s.args[0], "log", "--by", "laptop", "--store", filepath.Join(dir, "s"))
	log.Env = s.env
	if out, err := log.CombinedOutput(); err != nil || !strings.Contains(string(out), "laptop") {
		t.Errorf("%s %v", out, err)
	}
}

// The client of the TypeScript SDK, which is what agents use.
func TestServeTypeScript(t *testing.T) {
	proofs.ManyProcesses(t, "node and memctl serve are processes")
	t.Parallel()
	root := npmRoot(t)
	script, err := filepath.Abs(filepath.Join("testdata", "mcp", "http.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	s := startServing(t, t.TempDir())
	run := func(token string) ([]byte, error) {
		job, err := json.Marshal(map[string]string{"root": root, "url": s.url, "token": token, "text": "prefers tea"})
		if err != nil {
			t.Fatal(err)
		}
		return exec.CommandContext(t.Context(), "node", script, string(job)).Output()
	}
	out, err := run(s.token)
	if err != nil {
		t.Fatalf("%s %v", out, err)
	}
	var got struct {
		Tools     []string
		Failed    bool
		Recalled  string
		Resources []string
	}
	if err := json.Unmarshal(out, &got); err != nil || got.Failed || len(got.Tools) < 4 ||
		!strings.Contains(got.Recalled, "prefers tea") || len(got.Resources) != 0 {
		t.Errorf("%s %v", out, err)
	}
	if out, err := run("wrong"); err == nil {
		t.Errorf("a client with a wrong token is served: %s", out)
	}
}
