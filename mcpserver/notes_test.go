package mcpserver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/served"
)

// The six commands of the memory tool, over the notes of a project and those of the shared part.
func TestNoteTools(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	of := func(p Project) Options {
		o := in(p)
		o.Groups = []string{Memory, Notes}
		return o
	}
	a, none := eight(t, st, of(projectA)), eight(t, st, of(Project{}))
	if _, err := st.Notes().Write(t.Context(), "mine.md", []byte("a note of the user\n")); err != nil {
		t.Fatal(err)
	}
	has(t, a.says("memory", `{"command":"create","path":"/memories/plan.md","file_text":"1. build\n2. test\n"}`),
		"File created successfully at: /memories/plan.md")
	has(t, a.says("memory", `{"command":"view","path":"/memories","view_range":null}`), "/memories/plan.md")
	has(t, a.says("memory", `{"command":"view","path":"/memories/plan.md","view_range":"[2,-1]"}`), "2. test")
	has(t, a.says("memory", `{"command":"str_replace","path":"/memories/plan.md","old_str":"test","new_str":"ship"}`),
		"2. ship")
	a.says("memory", `{"command":"insert","path":"/memories/plan.md","insert_line":0,"insert_text":"# Plan\n"}`)
	a.says("memory", `{"command":"rename","old_path":"/memories/plan.md","new_path":"/memories/docs/plan.md"}`)
	n, err := st.Notes().Read(t.Context(), "projects/"+projectA.ID+"/docs/plan.md")
	if err != nil || string(n.Content) != "# Plan\n1. build\n2. ship\n" {
		t.Errorf("%q %v", n.Content, err)
	}
	// The user's notes are those of all projects, and the folder of the projects is not among them.
	has(t, a.says("memory", `{"command":"view","path":"/memories/mine.md","scope":"user"}`), "a note of the user")
	for _, c := range []*client{a, none} {
		if text := c.says("memory", `{"command":"view","path":"/memories","scope":"user"}`); !strings.Contains(text,
			"mine.md") || strings.Contains(text, "projects") {
			t.Error(text)
		}
		for _, path := range []string{"projects", "PROJECTS/" + projectA.ID + "/docs/plan.md", "projects/x"} {
			for _, command := range []string{`"view"`, `"delete"`, `"create","file_text":"x"`,
				`"str_replace","old_str":"# Plan","new_str":"x"`} {
				c.refuses("memory", `{"command":`+command+`,"scope":"user","path":"/memories/`+path+`"}`, "reserved")
			}
			c.refuses("memory", `{"command":"rename","old_path":"/memories/mine.md","new_path":"/memories/`+path+
				`","scope":"user"}`, "reserved")
		}
	}
	a.refuses("memory", `{"command":"view","path":"/memories/../mine.md"}`, "would escape")
	a.refuses("memory", `{"command":"view","path":"/memories/mine.md"}`, "does not exist")
	a.refuses("memory", `{"command":"look","path":"/memories"}`, "Invalid option")
	a.refuses("memory", `{"command":"view","file":"/memories"}`, `unknown argument "file"`)
	a.refuses("memory", `{"command":"create","path":"/memories/x"}`, "Missing `file_text`")
	// undo takes back a change of a note, too.
	a.says("memory", `{"command":"delete","path":"/memories/docs"}`)
	has(t, a.says("undo", `{}`), "undeleted note /memories/docs/plan.md")
	has(t, a.says("memory", `{"command":"view","path":"/memories/docs/plan.md"}`), "2. ship")
	// What another agent has built upon stays, and the answer names it.
	a.says("memory", `{"command":"create","path":"/memories/both.md","file_text":"one\n"}`)
	other := eight(t, st, of(projectA))
	other.says("memory", `{"command":"str_replace","path":"/memories/both.md","old_str":"one","new_str":"two"}`)
	a.refuses("undo", `{}`, "later changes are built upon some")
	a.refuses("undo", `{}`, "/memories/both.md")
	// An image is one in the answer.
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 50_000)
	if _, err := st.Notes().Write(t.Context(), "shot.png", []byte(png)); err != nil {
		t.Fatal(err)
	}
	r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "memory", Arguments: map[string]any{"command": "view",
		"path": "/memories/shot.png", "scope": "user"}})
	if err != nil || len(r.Content) != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	if img, ok := r.Content[1].(*mcp.ImageContent); !ok || img.MIMEType != "image/png" || string(img.Data) != png {
		t.Errorf("%T", r.Content[1])
	}
}

// TestRecallNotes: recall finds notes of the view as soon as they are written, and says so if the server does not offer
// them.
func TestRecallNotes(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	o := in(projectA)
	o.Groups = []string{Memory, Notes}
	a := eight(t, st, o)
	o.Groups = []string{Memory}
	without := eight(t, st, o)
	for path, text := range map[string]string{
		"vault/zeppelin.md":                    "# Airships\n\nThe zeppelin leaves at noon.\n",
		"projects/" + projectA.ID + "/plan.md": "board the zeppelin\n",
		"projects/other/secret.md":             "sink the zeppelin\n",
	} {
		if _, err := st.Notes().Write(t.Context(), path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	a.says("remember", `{"text":"Ada likes the zeppelin."}`)
	text := a.says("recall", `{"query":"zeppelin"}`)
	for _, want := range []string{"Ada likes the zeppelin.", "[/memories/plan.md:1-1] board the zeppelin",
		"[/memories/vault/zeppelin.md (scope user):1-3] # Airships↵↵The zeppelin leaves at noon."} {
		has(t, text, want)
	}
	if strings.Contains(text, "sink") {
		t.Errorf("a note of another project: %s", text)
	}
	if text := a.says("recall", `{"query":"zeppelin","category":"fact"}`); strings.Contains(text, ".md") {
		t.Errorf("a filter that no note passes: %s", text)
	}
	text = without.says("recall", `{"query":"zeppelin"}`)
	has(t, text, "offer the group of tools notes")
	if strings.Contains(text, ".md") || strings.Contains(text, "nothing found") {
		t.Error(text)
	}
	has(t, without.says("recall", `{"query":"absent"}`), "nothing found")
}

// A commit that changed notes of another project is not taken back, though the same connection made it.
func TestNotesOfAnotherProjectStay(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	now := projectA
	o := Options{Groups: Groups(), Project: func(context.Context, Origin) (Project, error) { return now, nil }}
	x, y := mcp.NewInMemoryTransports()
	ss, err := New(served.Only(st), o).Connect(t.Context(), x, nil)
	if err != nil {
		t.Fatal(err)
	}
	mc := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil)
	//lint:ignore SA1019 clients have roots for a year yet
	mc.AddRoots(&mcp.Root{URI: "file:///work/alpha"})
	cs, err := mc.Connect(t.Context(), y, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cs.Close()
		_ = ss.Wait()
	})
	c := &client{t, cs, nil}
	c.says("memory", `{"command":"create","path":"/memories/secret.md","file_text":"of alpha"}`)
	now = projectB
	//lint:ignore SA1019 clients have roots for a year yet
	mc.RemoveRoots("file:///work/alpha")
	for range 200 { // the notification is on its way
		if strings.Contains(c.says("memory", `{"command":"view","path":"/memories"}`), "the roots have changed") {
			text, _, isError := c.call("undo", `{}`)
			if !isError || strings.Contains(text, "secret") {
				t.Error(text)
			}
			if _, err := st.Notes().Read(t.Context(), "projects/"+projectA.ID+"/secret.md"); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Error("the project stays")
}

// The names of groups are one list, for every program that takes them.
func TestChooseGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names, want []string
	}{
		{[]string{"all"}, Groups()}, {[]string{" notes", "graph "}, []string{"notes", "graph"}},
		{[]string{"nonsense", "all"}, Groups()}, {[]string{"nonsense"}, nil}, {nil, nil}, {[]string{""}, nil},
	} {
		got, err := ChooseGroups(c.names)
		if (err != nil) != (c.want == nil) || err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v", c.names, got, err)
		}
		if err != nil && (!errors.Is(err, varve.ErrInvalid) || !strings.Contains(err.Error(),
			"graph, memory, working, notes, all")) {
			t.Errorf("%q: %v", c.names, err)
		}
	}
}
