//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// soon is how long a server may take to end, on a machine that does much else.
const soon = 20 * time.Second

// closeUnread ends the input, and waits for the process without reading what it writes. When
// it had calls to answer still, that they were given up is its exit code.
func (p *mcpProcess) closeUnread() {
	p.t.Helper()
	_ = p.in.Close()
	p.endsWith(cli.CodeOK, cli.CodeInternal)
}

// endsWith waits for the process, which is to end soon.
func (p *mcpProcess) endsWith(codes ...int) {
	p.t.Helper()
	began := time.Now()
	var late atomic.Bool
	timer := time.AfterFunc(soon, func() { late.Store(true); _ = p.cmd.Process.Signal(syscall.SIGQUIT) }) // it says where it is
	_ = p.cmd.Wait()
	timer.Stop()
	if got := p.cmd.ProcessState.ExitCode(); late.Load() {
		p.t.Fatalf("it has not ended after %v\n%s", soon, p.stderr.String())
	} else if !slices.Contains(codes, got) {
		p.t.Errorf("exit code %d, not %d\n%s", got, codes, p.stderr.String())
	}
	p.t.Logf("ended after %v", time.Since(began))
}

// locked holds a lock of a store, as another process does, until what it returns is called.
func locked(t *testing.T, store, name string) (release func()) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(store, "wal", name), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	release = func() { _ = f.Close() }
	t.Cleanup(release)
	return release
}

// stillGood opens the store: what is in it is whole.
func stillGood(t *testing.T, store string, want ...string) {
	t.Helper()
	st, err := varve.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, name := range want {
		if _, err := st.Get(t.Context(), "entity:"+name); err != nil {
			t.Error(err)
		}
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%v %v", f, err)
	}
}

// A server ends soon after its input, whatever a call waits for.
func TestMCPEndsWhileLocked(t *testing.T) {
	proofs.ManyProcesses(t, "processes that wait")
	t.Parallel()
	memctl := memctlBinary(t)
	for _, lock := range []string{"append.lock", "sync.lock", "flush.lock"} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			store := filepath.Join(t.TempDir(), "s")
			p := mcpStart(t, []string{cli.StoreVariable + "=" + store}, memctl, "mcp", "--tools", "graph,memory")
			p.tool("create_entities", fmt.Sprintf(createOne, "kept"))
			release := locked(t, store, lock)
			p.send(toolCallLine("99", "create_entities", fmt.Sprintf(createOne, "late")))
			_ = p.in.Close()
			if m, err := p.receive(); err != nil || m["id"] != float64(99) {
				t.Errorf("%v, %v: the call is to be answered", m, err)
			}
			if lock == "flush.lock" {
				p.endsWith(cli.CodeOK) // what it was called for is durable
			} else {
				p.endsWith(cli.CodeInternal) // it says that a call was given up
			}
			release()
			stillGood(t, store, "kept")
		})
	}
}

// A server ends soon after its input also when nobody reads what it writes, and when it does
// not read its input any more for that; and when it is told to end.
func TestMCPEndsUnread(t *testing.T) {
	proofs.ManyProcesses(t, "processes that wait")
	t.Parallel()
	memctl := memctlBinary(t)
	for _, c := range []struct {
		name  string
		calls int
		term  bool
	}{{"few calls", 3, false}, {"more than it reads", 200_000, false}, {"told to", 200_000, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := filepath.Join(t.TempDir(), "s")
			p := mcpStart(t, []string{cli.StoreVariable + "=" + store}, memctl, "mcp", "--tools", "graph,memory")
			p.tool("create_entities", fmt.Sprintf(createOne, "kept"))
			p.tool("create_entities", `{"entities":[{"name":"large","entityType":"t","observations":["`+strings.Repeat("x", 1<<20)+`"]}]}`)
			p.stall(c.calls, func(i int) string { return toolCallLine(fmt.Sprint(1000+i), "read_graph", `{}`) })
			if c.term {
				if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				p.endsWith(cli.CodeOK)
			} else {
				_ = p.in.Close()
				p.endsWith(cli.CodeInternal)
			}
			if files, err := filepath.Glob(filepath.Join(store, "memories", "entity-*.json")); err != nil || len(files) != 2 {
				t.Error(files, err)
			}
			stillGood(t, store, "kept", "large")
		})
	}
}

// While one call waits for another process, a second one with its id is refused, a ping is
// answered, and a call can be given up; then all goes on.
func TestMCPSameID(t *testing.T) {
	proofs.ManyProcesses(t, "a process")
	t.Parallel()
	store := filepath.Join(t.TempDir(), "s")
	p := mcpStart(t, []string{cli.StoreVariable + "=" + store}, memctlBinary(t), "mcp", "--tools", "graph,memory")
	p.tool("create_entities", fmt.Sprintf(createOne, "kept"))
	release := locked(t, store, "append.lock")
	for i, id := range []string{`9007199254740993`, `9007199254740993`, `9007199254740993.0`, `"9007199254740993"`, `9007199254740992`} {
		p.send(toolCallLine(id, "create_entities", fmt.Sprintf(createOne, fmt.Sprint("e", i))))
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740992}}`)
	p.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	got := map[string]int{}
	next := func() {
		_ = p.pipe.(*os.File).SetReadDeadline(time.Now().Add(soon))
		line, err := p.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%v\n%s", err, p.stderr.String())
		}
		id, rest, _ := strings.Cut(strings.TrimPrefix(line, `{"jsonrpc":"2.0","id":`), `,`)
		got[id+" "+rest[:min(len(rest), len(`"error":{"code":-32600`))]]++
	}
	for range 3 { // two refusals and the ping, in any order
		next()
	}
	release()
	for range 2 {
		next()
	}
	want := map[string]int{
		`9007199254740993 "error":{"code":-32600`: 1, `9007199254740993.0 "error":{"code":-32600`: 1, `"ping" "result":{}}` + "\n": 1,
		`9007199254740993 "result":{"content":[{`: 1, `"9007199254740993" "result":{"content":[{`: 1,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("answered: %v\nwant %v", got, want)
	}
	for _, name := range p.entities() {
		if name == "e1" || name == "e2" {
			t.Errorf("%s was made, though its call was refused", name)
		}
	}
	_ = p.in.Close()
	p.endsWith(cli.CodeOK)
	stillGood(t, store, "kept", "e0", "e3")
}

func toolCallLine(id, name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
}

// unread is how long a client that does not read waits until it takes it that the server
// reads no more.
const unread = 3 * time.Second

// stall writes n messages, as many as are taken while nobody reads; a goroutine writes the
// rest when somebody does.
func (p *mcpProcess) stall(n int, message func(i int) string) {
	p.t.Helper()
	in, stalled := p.in.(*os.File), make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() { close(stalled) })
		defer once()
		defer func() { _ = in.SetWriteDeadline(time.Time{}) }()
		for i := range n {
			rest := message(i) + "\n"
			for rest != "" {
				_ = in.SetWriteDeadline(time.Now().Add(unread))
				k, err := io.WriteString(in, rest)
				rest = rest[k:]
				if errors.Is(err, os.ErrDeadlineExceeded) {
					once()
				} else if err != nil {
					return
				}
			}
		}
	}()
	<-stalled
}
