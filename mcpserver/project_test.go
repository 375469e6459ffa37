package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/served"
)

var (
	projectA = Project{project.NewID([16]byte{1}), "alpha"}
	projectB = Project{project.NewID([16]byte{2}), "beta"}
)

func in(p Project) Options {
	return Options{Groups: Groups(), Project: func(context.Context, Origin) (Project, error) { return p, nil }}
}

// TestNothingReachesAcross: two projects with equal keys, sessions, categories, tags and near-equal texts in one store.
// Each tool is called in the one with each argument that could reach the other; nothing of that is in an answer, and
// nothing of it is changed.
func TestNothingReachesAcross(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	a, b := eight(t, st, in(projectA)), eight(t, st, in(projectB))
	const canary, asked = "CANARY-7d1f", "CANARY" // what only the other project has, and what calls look for
	tell := func(c *client, who string) {
		t.Helper()
		for _, args := range []string{
			`"text":"the deploy day is Friday %s","key":"deploy","session":"s","category":"decision","tags":["ops"]`,
			`"text":"the deploy day is Friday %s, for the second time","session":"s","metadata":{"source":"desk","n":3}`,
			`"text":"pinned for all %s","pin":true`,
			`"text":"kept %s, and deleted afterwards","key":"gone"`,
		} {
			c.says("remember", "{"+fmt.Sprintf(args, who)+"}")
		}
		c.says("forget", `{"key":"gone"}`)
		text, _, isError := c.call("working_set", `{"session":"s","key":"k","value":"`+who+`"}`)
		if isError {
			t.Fatal(text)
		}
		c.call("working_note", `{"session":"s","text":"note of `+who+`"}`)
		for _, path := range []string{"plan.md", "of " + who + "/x.md"} {
			c.says("memory", `{"command":"create","path":"/memories/`+path+`","file_text":"`+who+`"}`)
		}
	}
	tell(b, canary)
	tell(a, "ours")
	b.says("remember", `{"text":"the deploy day is Friday everywhere","scope":"user","key":"both"}`)
	var ids []string
	var versions []uint64
	docs, writers := map[string][]byte{}, []string{}
	for c, err := range st.Log(t.Context(), varve.LogOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range c.Changes {
			if ch.Kind != "memory" {
				continue
			}
			for v := range st.History(t.Context(), ch.ID) {
				if m, err := v.Decode(); err == nil && project.Of(&m) == projectB.ID {
					ids, versions = append(ids, ch.ID), append(versions, v.LSN)
					writers = append(writers, v.Writer.Session)
				}
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	slices.Sort(writers)
	writers = slices.Compact(writers)
	if len(ids) != 4 {
		t.Fatal(ids)
	}
	for _, id := range ids {
		doc, err := st.Admin().GetRaw(t.Context(), id)
		if err != nil && !errors.Is(err, varve.ErrNotFound) {
			t.Fatal(err)
		}
		docs[id] = doc
	}
	_, cursor, _ := strings.Cut(b.says("recall", `{"query":"deploy day","limit":1}`), "more: cursor ")
	_, place, _ := strings.Cut(b.says("recent", `{"limit":1}`), "more: cursor ")
	// The values of each argument that could reach across; others get one that the tool takes.
	var reach []any
	for _, id := range ids {
		reach = append(reach, id, id[len(id)-10:], "…"+id[len(id)-6:], id+"*")
	}
	reach = append(reach, "deploy", "gone", "s", "decision", "ops", asked, projectB.ID, projectB.Name,
		"../"+projectB.ID, projectB.ID+"/x",
		projectA.ID+"/../"+projectB.ID, "varve_project="+projectB.ID, "varve_project", "source=desk", "n>=1", cursor, place,
		"pinned", "agent", "host", "k", "*", "/memories/projects/"+projectB.ID+"/plan.md", "/memories/projects",
		"/memories/Projects/"+projectB.ID, "/memories/../"+projectB.ID+"/plan.md", "/memories/of "+canary, "/memories")
	for _, w := range writers {
		reach = append(reach, w)
	}
	for _, v := range versions {
		reach = append(reach, v)
	}
	base := map[string]map[string]any{
		"context": {"task": "the deploy day " + asked}, "remember": {"text": "the deploy day is Friday " + asked},
		"recall": {"query": "deploy day " + asked}, "update": {"key": "deploy", "session": "s", "text": "ours"}, "recent": {},
		"forget": {"ids": []string{"none-such"}}, "undo": {}, "history": {"key": "deploy", "session": "s"},
		"working_set": {"session": "s", "key": "x",
			"value": "y"}, "working_get": {"session": "s"}, "working_delete": {"session": "s", "keys": []string{"z"}},
		"working_task": {"session": "s"}, "working_note": {"session": "s", "text": "x"}, "working_notes": {"session": "s"},
		"working_checkpoint": {"session": "s",
			"description": "x"}, "working_checkpoints": {"session": "s"}, "working_restore": {"session": "s", "checkpoint": "x"},
		"memory":       {"command": "view", "path": "/memories", "scope": "user"},
		"search_nodes": {"query": asked}, "open_nodes": {"names": []string{asked}}, "read_graph": {},
	}
	calls, leaks, written, n := 0, 0, false, 0
	try := func(tool string, args map[string]any) {
		t.Helper()
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(raw)})
		if err != nil {
			t.Fatal(err)
		}
		calls++
		b, _ := json.Marshal(r)
		answer := string(b)
		forbidden := []string{canary}
		if !written { // no call has told this project the ids of the other one
			var said []string
			for _, given := range args { // what the call itself says may come back in an error
				if list, ok := given.([]any); ok {
					given = list[0]
				}
				said = append(said, fmt.Sprint(given))
			}
			slices.SortFunc(said, func(a, b string) int { return len(b) - len(a) }) // one may be part of another
			for _, given := range said {
				answer = strings.ReplaceAll(answer, given, "")
			}
			forbidden = append(append(forbidden, projectB.ID, "beta"), ids...)
		}
		for _, f := range forbidden {
			if strings.Contains(answer, f) {
				leaks++
				t.Errorf("%s %s: %s is in %s", tool, raw, f, answer)
			}
		}
	}
	all := slices.Concat(memoryTools(), workingTools(), noteTools(), lenient(graphTools()))
	reading := slices.DeleteFunc(slices.Clone(all), func(t tool) bool { return !t.hints.readOnly })
	writing := slices.DeleteFunc(slices.Clone(all), func(t tool) bool { return t.hints.readOnly })
	for _, tool := range slices.Concat(reading, writing, reading) {
		written = written || !tool.hints.readOnly
		args, ok := base[tool.name]
		if !ok {
			if tool.hints.lenient {
				continue // what writes to the graph writes to the shared part
			}
			t.Fatalf("%s has no call here", tool.name)
		}
		try(tool.name, args)
		for _, p := range tool.in.props {
			for _, v := range reach {
				if n++; !proofs.Long() && n%4 > 0 { // VARVE_LONG=1 runs all
					continue
				}
				if p.shape.kind == "array" {
					v = []any{v}
				}
				with := map[string]any{p.name: v}
				for name, was := range args {
					// A memory is named in one way.
					if name != p.name && !(name == "key" && (p.name == "id" || p.name == "ids")) &&
						!(name == "ids" && p.name == "key") {
						with[name] = was
					}
				}
				try(tool.name, with)
				if tool.name == "update" && p.name == "id" {
					delete(with, "text")
					with["append"] = "x"
					try(tool.name, with)
				}
			}
		}
	}
	if r, err := a.ReadResource(t.Context(),
		&mcp.ReadResourceParams{URI: resourceURI}); err != nil || strings.Contains(fmt.Sprint(r.Contents[0].Text), canary) {
		t.Errorf("%v %v", r, err)
	}
	for id, doc := range docs {
		now, err := st.Admin().GetRaw(t.Context(), id)
		if doc != nil && (err != nil || !bytes.Equal(now, doc)) || doc == nil && err == nil {
			leaks++
			t.Errorf("%s was changed: %s %v", id, now, err)
		}
	}
	has(t, b.says("memory", `{"command":"view","path":"/memories/plan.md"}`), canary)
	text, _, _ := b.call("working_get", `{"session":"s"}`)
	has(t, text, canary)
	if strings.Contains(text, "ours") {
		t.Error(text)
	}
	t.Logf("%d calls, %d leaks", calls, leaks)
	if calls < 1500 {
		t.Errorf("only %d calls", calls)
	}
	// The shared part is of both, and marked.
	has(t, a.says("recall", `{"query":"everywhere"}`), "* · ", "Friday everywhere", sharedLine)
}

// What was stored before there were projects, and what has scope user, is in each; the same key has a value in each.
func TestSharedPart(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), nil)
	if _, err := st.Put(t.Context(), varve.Memory{ID: "older-than-projects",
		Content: "an old memory of the user"}); err != nil {
		t.Fatal(err)
	}
	a, b, none := eight(t, st, in(projectA)), eight(t, st, in(projectB)), eight(t, st, Options{})
	a.says("remember", `{"text":"the editor is vim","key":"editor"}`)
	b.says("remember", `{"text":"the editor is emacs","key":"editor"}`)
	b.says("remember", `{"text":"the editor of the user is nano","key":"editor","scope":"user"}`)
	for c, want := range map[*client][3]bool{a: {true, false, false}, b: {false, true, false}, none: {false, false,
		true}} {
		got := c.says("recall", `{"query":"editor"}`)
		for i, word := range []string{"vim", "emacs", "nano"} {
			if strings.Contains(got, word) != want[i] {
				t.Errorf("%s: %s", word, got)
			}
		}
		has(t, c.says("recall", `{"query":"old memory"}`), "old memory of the user")
	}
	// By its key a project's own comes first, then the shared one.
	a.says("update", `{"key":"editor","text":"the editor is helix"}`)
	has(t, a.says("history", `{"key":"editor"}`), "helix", "vim")
	has(t, b.says("recent", `{"key":"editor"}`), "emacs")
	if text := b.says("recent", `{"key":"editor"}`); strings.Contains(text, "nano") {
		t.Error(text)
	}
	has(t, b.says("remember", `{"text":"the editor of the user is joe","key":"editor","scope":"user"}`),
		"replaced the memory that had the key")
	if text := none.says("recall", `{"query":"editor"}`); strings.Contains(text, sharedLine) {
		t.Error(text)
	}
	// The same text in two projects is two memories.
	a.says("remember", `{"text":"the build takes nine minutes"}`)
	has(t, b.says("remember", `{"text":"the build takes nine minutes"}`), "remembered [")
	// An id of another project is not replaced.
	counts, err := project.Count(t.Context(), st)
	if err != nil || counts[projectA.ID] != 2 || counts[projectB.ID] != 2 || counts[""] != 2 {
		t.Errorf("%v %v", counts, err)
	}
	n, err := project.Merge(t.Context(), st, projectB.ID, projectA.ID, project.MergeOptions{})
	if n.Memories != 2 || err != nil {
		t.Errorf("%v %v", n, err)
	}
	has(t, a.says("recall", `{"query":"editor"}`), "emacs", "helix")
	a.says("forget", `{"key":"editor"}`)
	a.says("undo", `{}`)
	has(t, a.says("remember", `{"text":"the editor is ed","key":"editor"}`), "removed 1 more")
	if _, err := project.Merge(t.Context(), st, projectA.ID, "", project.MergeOptions{}); err != nil {
		t.Error(err)
	}
	has(t, none.says("recall", `{"query":"build"}`), "nine minutes")
}

// The project follows the roots of the client, and an answer says so. A client whose roots are unknown is not served.
func TestRoots(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), nil)
	var seen atomic.Value
	o := Options{Project: func(_ context.Context, of Origin) (Project, error) {
		roots := of.Roots
		seen.Store(fmt.Sprint(roots))
		switch {
		case len(roots) == 0:
			return Project{}, nil
		case strings.HasSuffix(roots[0], "alpha"):
			return projectA, nil
		case strings.HasSuffix(roots[0], "bad"):
			return Project{}, errors.New("this root is of somebody else")
		}
		return projectB, nil
	}}
	connected := func(roots ...string) (*client, *mcp.Client) {
		x, y := mcp.NewInMemoryTransports()
		ss, err := New(served.Only(st), o).Connect(t.Context(), x, nil)
		if err != nil {
			t.Fatal(err)
		}
		mc := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil)
		for _, r := range roots {
			//lint:ignore SA1019 clients have roots for a year yet
			mc.AddRoots(&mcp.Root{URI: r})
		}
		cs, err := mc.Connect(t.Context(), y, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cs.Close()
			_ = ss.Wait()
		})
		return &client{t, cs, nil}, mc
	}
	c, mc := connected("file:///work/alpha", "https://example.org/x")
	c.says("remember", `{"text":"a fact of alpha"}`)
	if got := seen.Load(); got != "[/work/alpha]" && got != `[\work\alpha]` {
		t.Error(got)
	}
	//lint:ignore SA1019 clients have roots for a year yet
	mc.RemoveRoots("file:///work/alpha", "https://example.org/x")
	//lint:ignore SA1019 clients have roots for a year yet
	mc.AddRoots(&mcp.Root{URI: "file:///work/beta"})
	for range 200 { // the notification is on its way
		if text := c.says("recall", `{"query":"fact"}`); strings.Contains(text,
			"the roots have changed: the project is beta now, and was alpha") {
			has(t, text, "nothing found")
			c.refuses("undo", `{}`, "outside this project")
			c.says("remember", `{"text":"a fact of beta, for a while"}`)
			has(t, c.says("undo", `{}`), "took back", "for a while")
			c.says("undo", `{}`) // again
			c.says("undo", `{}`)
			has(t, c.says("recall", `{"query":"fact"}`), "nothing found → ")
			bad, _ := connected("file:///work/bad")
			bad.refuses("recall", `{"query":"fact"}`, "this root is of somebody else")
			bad.refuses("context", `{}`, "this root is of somebody else")
			return
		}
	}
	t.Error("the project stays")
}
