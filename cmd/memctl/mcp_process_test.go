package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/mcpcmd"
	"github.com/varve-db/varve/internal/proofs"
)

// memctl is this program as a process of its own: the test's binary, which is memctl
// under that name.
func memctlBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "memctl")
	if runtime.GOOS == "windows" {
		path += ".exe"
		b, err := os.ReadFile(self)
		if err = errors.Join(err, os.WriteFile(path, b, 0o700)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// mcpProcess is a server as a client sees it: lines in, lines out.
type mcpProcess struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	pipe   io.ReadCloser
	out    *bufio.Reader
	stderr lockedBuffer
	last   int
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// mcpStart starts a server and shakes hands with it. What decides on the store is in
// env alone.
func mcpStart(t *testing.T, env []string, command ...string) *mcpProcess {
	t.Helper()
	p := &mcpProcess{t: t, cmd: exec.Command(command[0], command[1:]...)}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); name != cli.StoreVariable && name != mcpcmd.MemoryFileVariable && !strings.HasPrefix(name, "VARVE_EMBED") {
			p.cmd.Env = append(p.cmd.Env, e)
		}
	}
	p.cmd.Env = append(append(p.cmd.Env, "XDG_STATE_HOME="+t.TempDir()), env...) // for the ids of projects
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.pipe, p.out = in, out, bufio.NewReaderSize(out, 1<<20)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	p.request("initialize", json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`))
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p
}

func (p *mcpProcess) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatalf("%v\n%s", err, p.stderr.String())
	}
}

// receive gives the next answer; notifications are passed over.
func (p *mcpProcess) receive() (map[string]any, error) {
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("stdout carries %q: %w", line, err)
		}
		if m["id"] != nil {
			return m, nil
		}
	}
}

// request gives what a call is answered: its result, or its error.
func (p *mcpProcess) request(method string, params json.RawMessage) map[string]any {
	p.t.Helper()
	p.last++
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q`, p.last, method)
	if len(params) > 0 {
		line += `,"params":` + string(params)
	}
	if f, ok := p.pipe.(*os.File); ok { // a call without an answer ends the test, not its time
		_ = f.SetReadDeadline(time.Now().Add(4 * time.Minute))
		defer f.SetReadDeadline(time.Time{})
	}
	p.send(line + "}")
	m, err := p.receive()
	if err != nil {
		p.t.Fatalf("%s %s: %v\n%s", method, params, err, p.stderr.String())
	}
	if m["id"] != float64(p.last) {
		p.t.Fatalf("%s: the answer is to %v, not to %d", method, m["id"], p.last)
	}
	delete(m, "id")
	delete(m, "jsonrpc")
	return m
}

func (p *mcpProcess) tool(name, args string) map[string]any {
	p.t.Helper()
	return p.request("tools/call", json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)))
}

// entities are the names in the graph.
func (p *mcpProcess) entities() []string {
	p.t.Helper()
	m := p.tool("read_graph", "{}")
	var names []string
	for _, e := range m["result"].(map[string]any)["structuredContent"].(map[string]any)["entities"].([]any) {
		names = append(names, e.(map[string]any)["name"].(string))
	}
	return names
}

// end waits for the process, which must have nothing more to say on stdout.
func (p *mcpProcess) end() error {
	p.t.Helper()
	_ = p.in.Close()
	rest, err := io.ReadAll(p.out)
	if err != nil || len(rest) > 0 {
		p.t.Errorf("stdout ends with %q, %v", rest, err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	return p.cmd.Wait()
}

const createOne = `{"entities":[{"name":%q,"entityType":"t","observations":["o"]}]}`

// Which store is served, and that the file of the server it replaces is taken over.
func TestMCPStore(t *testing.T) {
	proofs.ManyProcesses(t, "every case is a process")
	t.Parallel()
	memctl, dir := memctlBinary(t), t.TempDir()
	file := filepath.Join(dir, "old", "memory.jsonl")
	old := `{"type":"entity","name":"old","entityType":"t","observations":[]}` + "\n" + `{"type":"entity","na`
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(old), 0o600)); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	data := filepath.Join(dir, "xdg")
	for _, c := range []struct {
		name  string
		env   []string
		args  []string
		store string
		there string
	}{
		{"flag", []string{cli.StoreVariable + "=" + filepath.Join(dir, "no"), mcpcmd.MemoryFileVariable + "=" + file}, []string{"--store", filepath.Join(dir, "flag")}, filepath.Join(dir, "flag"), "[new]"},
		{"variable", []string{cli.StoreVariable + "=" + filepath.Join(dir, "variable"), mcpcmd.MemoryFileVariable + "=" + file}, nil, filepath.Join(dir, "variable"), "[new]"},
		{"file", []string{mcpcmd.MemoryFileVariable + "=" + file, "XDG_DATA_HOME=" + data}, nil, filepath.Join(dir, "old", "memory.jsonl.varve"), "[old new]"},
		{"no file yet", []string{mcpcmd.MemoryFileVariable + "=" + filepath.Join(dir, "old", "none.json"), "XDG_DATA_HOME=" + data}, nil, filepath.Join(dir, "old", "none.json.varve"), "[new]"},
		{"data folder", []string{"XDG_DATA_HOME=" + data}, nil, filepath.Join(data, "varve", "memory"), "[new]"},
		{"home", []string{"XDG_DATA_HOME=relative", "HOME=" + home}, nil, filepath.Join(home, ".local", "share", "varve", "memory"), "[new]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "home" && runtime.GOOS != "linux" {
				c.store = ""
			}
			for round := range 2 { // the second finds what the first left
				p := mcpStart(t, c.env, append([]string{memctl, "mcp", "--tools", "all"}, c.args...)...)
				p.tool("create_entities", fmt.Sprintf(createOne, "new"))
				if got := fmt.Sprint(p.entities()); got != c.there {
					t.Errorf("round %d: %s, want %s", round, got, c.there)
				}
				if err := p.end(); err != nil {
					t.Errorf("%v\n%s", err, p.stderr.String())
				}
				if told := strings.Contains(p.stderr.String(), "memory.jsonl:2 was kept aside"); told != (c.name == "file" && round == 0) {
					t.Errorf("round %d: %s", round, p.stderr.String())
				}
			}
			if c.store != "" && !cli.IsStore(c.store) {
				t.Errorf("there is no store in %s", c.store)
			}
		})
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != old {
		t.Error("the old file was touched", err)
	}
}

func TestDataFolder(t *testing.T) {
	t.Parallel()
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	for _, c := range []struct {
		system string
		get    func(string) string
		want   string
	}{
		{"linux", env("HOME", "/h"), "/h/.local/share/varve/memory"},
		{"linux", env("HOME", "/h", "XDG_DATA_HOME", "x"), "/h/.local/share/varve/memory"},
		{"darwin", env("HOME", "/h"), "/h/Library/Application Support/varve/memory"},
		{"windows", env("LOCALAPPDATA", "/l"), "/l/varve/memory"},
		{"windows", env("USERPROFILE", "/u"), "/u/AppData/Local/varve/memory"},
		{"linux", env(), ""},
	} {
		got, err := cli.DataFolder(c.get, c.system)
		if filepath.ToSlash(got) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v, want %q", c.system, got, err, c.want)
		}
	}
}

// Servers that are killed in the middle of a storm lose nothing that they have
// acknowledged, and the others go on.
func TestMCPKilled(t *testing.T) {
	proofs.ManyProcesses(t, "many processes")
	t.Parallel()
	memctl, store := memctlBinary(t), filepath.Join(t.TempDir(), "s")
	env := []string{cli.StoreVariable + "=" + store}
	const rounds, calls = 5, 400
	var mu sync.Mutex
	var acknowledged []string
	t.Run("storm", func(t *testing.T) {
		for s := range 2 {
			t.Run(fmt.Sprint(s), func(t *testing.T) {
				t.Parallel()
				for round := range rounds {
					p := mcpStart(t, env, memctl, "mcp", "--tools", "all")
					names := map[float64]string{}
					for i := range calls {
						names[float64(1000+i)] = fmt.Sprintf("server %d round %d call %d", s, round, i)
					}
					go func() {
						for i := range calls {
							line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"create_entities","arguments":`+createOne+"}}\n", 1000+i, names[float64(1000+i)])
							if _, err := io.WriteString(p.in, line); err != nil {
								return
							}
						}
					}()
					for n := 0; ; n++ {
						if n == 40*(round+1) {
							_ = p.cmd.Process.Kill()
						}
						m, err := p.receive()
						if err != nil {
							break
						}
						if r, ok := m["result"].(map[string]any); ok && r["isError"] == nil {
							mu.Lock()
							acknowledged = append(acknowledged, names[m["id"].(float64)])
							mu.Unlock()
						}
					}
					_ = p.cmd.Wait()
				}
			})
		}
	})
	p := mcpStart(t, env, memctl, "mcp", "--tools", "all")
	there := map[string]bool{}
	for _, name := range p.entities() {
		there[name] = true
	}
	for _, name := range acknowledged {
		if !there[name] {
			t.Errorf("%q was acknowledged and is not there", name)
		}
	}
	if len(acknowledged) < 2*rounds*40 {
		t.Errorf("only %d calls were acknowledged", len(acknowledged))
	}
	t.Logf("%d acknowledged, %d there", len(acknowledged), len(there))
	if err := p.end(); err != nil {
		t.Error(err)
	}
}
