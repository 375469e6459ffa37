package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/served"
)

// called connects a client under a name, with roots.
func called(t *testing.T, st *varve.Store, o Options, name string, roots ...string) (*client, *mcp.Client) {
	t.Helper()
	a, b := mcp.NewInMemoryTransports()
	ss, err := New(served.Only(st), o).Connect(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	mc := mcp.NewClient(&mcp.Implementation{Name: name, Version: "7"}, nil)
	for _, r := range roots {
		//lint:ignore SA1019 clients have roots for a year yet
		mc.AddRoots(&mcp.Root{URI: r})
	}
	cs, err := mc.Connect(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cs.Close()
		_ = ss.Wait()
	})
	return &client{t, cs, nil}, mc
}

// A client that connects again under another name is another writer, and the name of the first stays with what it
// wrote. Of two clients with one name each takes back its own; a key that both write at once has one value.
func TestClientsAndNames(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	first, _ := called(t, st, Options{}, "first")
	first.says("remember", `{"text":"told by the first","key":"k"}`)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, _ := called(t, st, Options{}, "second")
	second.refuses("undo", `{}`, "you have written nothing since you connected")
	has(t, second.says("recent", `{"writer":"first"}`), "told by the first")
	second.says("update", `{"key":"k","append":"and by the second"}`)
	has(t, second.says("history", `{"key":"k"}`), "first 7 (mcp-", "second 7 (you)")
	has(t, second.says("undo", `{}`), "put back", "told by the first")

	const writers, times = 4, 25
	var all []*client
	for range writers {
		c, _ := called(t, st, Options{}, "same")
		all = append(all, c)
	}
	var group sync.WaitGroup
	var failed atomic.Value
	for i, c := range all {
		group.Go(func() {
			for n := range times {
				if text, _, isError := c.call("remember", fmt.Sprintf(`{"text":"value %d of writer %d","key":"shared"}`, n,
					i)); isError {
					failed.Store(text)
				}
			}
		})
	}
	group.Wait()
	if text := failed.Load(); text != nil {
		t.Fatal(text)
	}
	values := 0
	for m, err := range st.Memories(t.Context(), varve.WithKey("shared")) {
		if err != nil {
			t.Fatal(err)
		}
		values++
		if !strings.HasPrefix(m.Content, fmt.Sprintf("value %d ", times-1)) {
			t.Errorf("the last value is %q", m.Content)
		}
	}
	if values != 1 {
		t.Errorf("the key has %d values", values)
	}
	for _, c := range all {
		text, _, isError := c.call("undo", `{}`)
		if isError != strings.Contains(text, "built upon") {
			t.Error(text)
		}
	}
}

// The roots of a client change while its calls are under way: each call is of one project, and nothing is lost.
func TestRootsChangeUnderWay(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), nil)
	o := Options{Project: func(_ context.Context, of Origin) (Project, error) {
		if len(of.Roots) > 0 && strings.HasSuffix(of.Roots[0], "beta") {
			return projectB, nil
		}
		return projectA, nil
	}}
	c, mc := called(t, st, o, "agent", "file:///work/alpha")
	const calls = 200
	var group sync.WaitGroup
	limit := make(chan struct{}, 16)
	for i := range calls {
		if i%20 == 10 {
			from, to := "file:///work/alpha", "file:///work/beta"
			if i%40 == 30 {
				from, to = to, from
			}
			//lint:ignore SA1019 clients have roots for a year yet
			mc.RemoveRoots(from)
			//lint:ignore SA1019 clients have roots for a year yet
			mc.AddRoots(&mcp.Root{URI: to})
		}
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			if text, _, isError := c.call("remember", fmt.Sprintf(`{"text":"fact number %d","key":"key %d"}`, i,
				i)); isError {
				t.Error(text)
			}
		})
	}
	group.Wait()
	counts, err := project.Count(t.Context(), st)
	if err != nil || counts[projectA.ID]+counts[projectB.ID] != calls || counts[projectA.ID] == 0 ||
		counts[projectB.ID] == 0 {
		t.Errorf("%v %v", counts, err)
	}
}

// TestLeftOutFits: the line about up to 999 memories that were left out fits into the tokens that are reserved for it.
// For more memories, a shorter line may take its place.
func TestLeftOutFits(t *testing.T) {
	t.Parallel()
	b := budget{left: reserve}
	if line := fmt.Sprintf(leftOut, 999); !b.add(line) {
		t.Errorf("%q has %d tokens, reserved are %d", line, tokens(line), reserve)
	}
}

// TestOneLongSession: answers from a session of 100,000 memories keep to their budget, and say how to ask for more.
// Without VARVE_LONG=1 it has 5,000.
func TestOneLongSession(t *testing.T) {
	t.Parallel()
	n := 5_000
	if proofs.Long() {
		n = 100_000
	}
	st := openStore(t, t.TempDir(), nil)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for from := 0; from < n; from += 1000 {
		var batch []varve.Memory
		for i := from; i < from+1000; i++ {
			m := varve.Memory{Content: fmt.Sprintf("On day %d the deployment of service %d took %d minutes in region %d.", i/50,
				i%97, i%13, i%7), Timestamp: start.Add(time.Duration(i) * time.Minute),
				Metadata: map[string]any{"session_id": "long", "category": "deploy", project.Member: projectA.ID}}
			if i%1000 == 0 {
				m.Metadata["tags"] = []any{pinned}
			}
			batch = append(batch, m)
		}
		if _, err := st.PutAll(t.Context(), slices.Values(batch)); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := eight(t, st, in(projectA))
	took := func(tool, args string, most int, parts ...string) {
		t.Helper()
		begun := time.Now()
		text := c.says(tool, args)
		d := time.Since(begun)
		if got := tokens(text); got > most {
			t.Errorf("%s %s: %d tokens, at most %d", tool, args, got, most)
		}
		has(t, text, parts...)
		t.Logf("%d memories: %s %s: %d tokens in %v", n, tool, args, tokens(text), d.Round(time.Millisecond/10))
	}
	for range 2 { // the first call of a kind reads what later ones have
		took("context", `{"task":"the deployment of service 42","session":"long"}`, defaultBudget, "pinned:", "relevant:",
			"left out")
		took("context", `{"session":"long","budget":10}`, 10)
		took("context", `{"task":"deployment","budget":1000000}`, 1_000_000, "recent:")
		took("recall", `{"query":"\"service 42\" region","session":"long"}`, 1000, "service 42",
			"more: cursor ")
		took("recent", `{"session":"long","limit":5}`, 400, "more: cursor ")
		took("recent", `{"session":"long","when":"2026-01-02","limit":5}`, 400, "2026-01-02")
	}
	name := strings.Repeat("s", maxSession)
	c.says("remember", `{"text":"a long name","session":"`+name+`"}`)
	has(t, c.says("recall", `{"query":"a long name","session":"`+name+`"}`), "a long name")
	c.refuses("remember", `{"text":"too long a name","session":"`+name+`s"}`, "1024")
}
