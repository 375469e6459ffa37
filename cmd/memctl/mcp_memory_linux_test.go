package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/proofs"
)

// mostRSS is what a server may take, whatever its client does.
const mostRSS = 256 << 20

// peak is how much memory the process has taken at most.
func (p *mcpProcess) peak() int64 {
	p.t.Helper()
	n, err := p.peakNow()
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *mcpProcess) peakNow() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("no VmHWM") // of what has ended
}

// endPeak ends the process and looks at its peak all the while: what is left to settle is settled then.
func (p *mcpProcess) endPeak() (int64, error) {
	p.t.Helper()
	most, looked := p.peak(), make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(looked)
		for every := time.NewTicker(time.Millisecond); ; {
			select {
			case <-every.C:
				if n, err := p.peakNow(); err == nil {
					most = max(most, n)
				}
			case <-ended:
				return
			}
		}
	}()
	err := p.end()
	close(ended)
	<-looked
	return most, err
}

// flood writes n messages without reading, and then reads: all that it gets until the answers
// to n calls are there.
func (p *mcpProcess) flood(n int, message func(i int) string) {
	p.t.Helper()
	p.stall(n, message)
	p.t.Logf("unread: %d MiB", p.peak()>>20)
	for answers := 0; answers < n; answers++ {
		if _, err := p.receive(); err != nil {
			p.t.Fatalf("after %d answers: %v\n%s", answers, err, p.stderr.String())
		}
	}
}

func toolLine(id int, name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
}

// graphOf makes a store of n entities, g0 and so on, with so much text each.
func graphOf(t *testing.T, n, bytes int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	st, err := varve.Open(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		e := graph.Entity{Name: fmt.Sprint("g", i), Type: "t", Observations: []string{strings.Repeat("x ", bytes/2)}}
		if _, err := st.Put(t.Context(), e.Memory(time.Unix(1, int64(i)), nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A server stays within its memory whatever a client sends, or does not read; and what it is
// asked is answered when somebody reads.
func TestMCPMemory(t *testing.T) {
	proofs.ManyProcesses(t, "gigabytes")
	t.Parallel()
	memctl := memctlBinary(t)
	start := func(t *testing.T, store string) *mcpProcess {
		if store == "" {
			store = filepath.Join(t.TempDir(), "s")
		}
		return mcpStart(t, []string{cli.StoreVariable + "=" + store, "GOMEMLIMIT="}, memctl, "mcp", "--tools", "graph,memory,working")
	}
	within := func(t *testing.T, p *mcpProcess) {
		t.Helper()
		n, err := p.endPeak()
		if err != nil {
			t.Errorf("%v\n%s", err, p.stderr.String())
		}
		if n > mostRSS {
			t.Errorf("it has taken %d MiB", n>>20)
		} else {
			t.Logf("%d MiB", n>>20)
		}
	}
	// The everyday share is of what comes in small pieces, where the pieces are what counts.
	many := func(n int) int { return n / proofs.Every(4) }
	large := func(name string) string {
		return fmt.Sprintf(`{"entities":[{"name":%q,"entityType":"t","observations":["%s"]}]}`, name, strings.Repeat("x", 7<<20))
	}
	t.Run("large calls", func(t *testing.T) {
		p := start(t, "")
		p.flood(40, func(i int) string { return toolLine(1000+i, "create_entities", large(fmt.Sprint(i))) })
		within(t, p)
	})
	t.Run("large answers", func(t *testing.T) {
		proofs.Seldom(t, "up to 20 s of one processor")
		p := start(t, graphOf(t, 14, 1<<20))
		p.flood(8, func(i int) string { return toolLine(1000+i, "read_graph", `{}`) })
		p.flood(8, func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"memory://knowledge-graph"}}`, 2000+i)
		})
		within(t, p)
	})
	t.Run("answers that are too large", func(t *testing.T) {
		proofs.Seldom(t, "up to 20 s of one processor")
		p := start(t, graphOf(t, 32, 1<<20))
		p.flood(8, func(i int) string { return toolLine(1000+i, "read_graph", `{}`) })
		within(t, p)
	})
	t.Run("small calls", func(t *testing.T) {
		p := start(t, "")
		p.flood(many(10_000), func(i int) string { return toolLine(1000+i, "create_entities", fmt.Sprintf(createOne, fmt.Sprint(i))) })
		within(t, p)
	})
	t.Run("pings", func(t *testing.T) {
		p := start(t, "")
		p.flood(many(100_000), func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 1000+i) })
		within(t, p)
	})
	t.Run("lines that are no messages", func(t *testing.T) {
		proofs.Seldom(t, "up to 20 s of one processor")
		p := start(t, "")
		p.stall(many(3_000), func(i int) string { return strings.Repeat("x\n", 1000) })
		if n := p.peak(); n > mostRSS {
			t.Errorf("it has taken %d MiB", n>>20)
		}
		p.closeUnread()
	})
	t.Run("a line without an end", func(t *testing.T) {
		proofs.Seldom(t, "up to 20 s of one processor")
		p := start(t, "")
		mib := strings.Repeat("x", 1<<20)
		for range 512 {
			if _, err := io.WriteString(p.in, mib); err != nil {
				t.Fatal(err)
			}
		}
		if n := p.peak(); n > mostRSS {
			t.Errorf("it has taken %d MiB", n>>20)
		}
		p.closeUnread()
	})
	t.Run("what is large when it is read", func(t *testing.T) {
		p := start(t, "")
		for i, args := range []string{
			`{"x":[` + strings.Repeat("{},", 2_800_000) + `1]}`, `{"entities":[` + strings.Repeat("1,", 4_000_000) + `1]}`, `{"entities":[` + strings.Repeat("{},", 43_000) + `1]}`,
			`{"entities":[` + strings.Repeat(`["",[]],`, 20_000) + `1]}`, `{"x":` + strings.Repeat("[", 4_000_000) + strings.Repeat("]", 4_000_000) + `}`,
		} {
			p.send(toolLine(1000+i, "create_entities", args))
			if m, err := p.receive(); err != nil || m["error"] == nil && m["result"].(map[string]any)["isError"] != true {
				t.Errorf("%.60s: %.200v, %v", args, m, err)
			}
		}
		value, _ := json.Marshal(`[` + strings.Repeat("1,", 4_000_000) + `1]`)
		if m := p.tool("working_set", `{"session":"s","key":"k","json":true,"value":`+string(value)+`}`); m["result"].(map[string]any)["isError"] != true {
			t.Errorf("%.200v", m)
		}
		entities := make([]string, 26_000)
		for i := range entities {
			entities[i] = fmt.Sprintf(`{"name":"n%d","entityType":"","observations":[]}`, i)
		}
		if m := p.tool("create_entities", `{"entities":[`+strings.Join(entities, ",")+`]}`); m["error"] != nil || m["result"].(map[string]any)["isError"] == true {
			t.Errorf("%.200v", m)
		}
		within(t, p)
	})
	t.Run("large memories", func(t *testing.T) {
		proofs.Seldom(t, "40 s of one processor")
		p := start(t, graphOf(t, 16, 7<<20))
		p.flood(16, func(i int) string {
			return toolLine(1000+i, "add_observations", fmt.Sprintf(`{"observations":[{"entityName":"g%d","contents":["y"]}]}`, i))
		})
		var all []string
		for i := range 16 {
			all = append(all, fmt.Sprintf(`{"entityName":"g%d","contents":["z"]}`, i))
		}
		m := p.tool("add_observations", `{"observations":[`+strings.Join(all, ",")+`]}`)
		if !strings.Contains(fmt.Sprint(m), "nothing was changed: divide the change into several calls") {
			t.Errorf("%.300v", m)
		}
		p.flood(10, func(i int) string { return toolLine(2000+i, "open_nodes", fmt.Sprintf(`{"names":["g%d"]}`, i)) })
		p.flood(4, func(i int) string { return toolLine(3000+i, "recall", `{"query":"x","limit":100,"max_chars":1000000}`) })
		p.flood(4, func(i int) string { return toolLine(4000+i, "recent", `{"limit":100,"max_chars":1000000}`) })
		p.tool("remember", `{"text":"x x x x x x"}`)
		within(t, p)
	})
	t.Run("changes that nobody hears of", func(t *testing.T) {
		p := start(t, "")
		for range 10 {
			p.request("resources/subscribe", json.RawMessage(`{"uri":"memory://knowledge-graph"}`))
		}
		p.flood(many(3000), func(i int) string { return toolLine(1000+i, "create_entities", fmt.Sprintf(createOne, fmt.Sprint(i))) })
		if n := p.peak(); n > mostRSS {
			t.Errorf("it has taken %d MiB", n>>20)
		}
		p.closeUnread()
	})
}
