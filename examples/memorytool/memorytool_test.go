package main

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/memorytool"
)

// TestToolRunner: the runner of the SDK sends the tool by its type, and its calls reach the notes.
func TestToolRunner(t *testing.T) {
	st, err := varve.Open(t.Context(), filepath.Join(t.TempDir(), "storage"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	if _, err := st.Notes().Write(t.Context(), "map.png", []byte("\x89PNG\r\n\x1a\n")); err != nil {
		t.Fatal(err)
	}
	tool, err := memorytool.New(st.Notes(), memorytool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fake := newFakeAPI(
		turn{calls: []call{{"command": "view", "path": "/memories/map.png"}}},
		turn{calls: []call{{"command": "create", "path": "/memories/a.md", "file_text": "prefers trains\n"}}},
		turn{calls: []call{
			{"command": "str_replace", "path": "/memories/a.md", "old_str": "trains", "new_str": "buses"},
			{"command": "view", "path": "/memories/b.md"},
		}},
		turn{calls: []call{{"command": "insert", "path": "/memories/no.md", "insert_line": 0, "insert_text": "x"}}},
		turn{text: "done"})
	api := httptest.NewServer(fake)
	defer api.Close()
	client := anthropic.NewClient(option.WithBaseURL(api.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
	answer, err := run(t.Context(), client, "fake", tool, "Remember it.")
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Content) != 1 || answer.Content[0].Text != "done" {
		t.Error(answer.RawJSON())
	}
	for i, want := range [][]result{
		nil,
		{{"toolu_1_0", false, "Here's the image /memories/map.png.", "image/png"}},
		{{"toolu_2_0", false, "File created successfully at: /memories/a.md", ""}},
		{
			{"toolu_3_0", false, "The memory file has been edited. Here is the snippet showing the change (with line " +
				"numbers):\n" +
				"     1\tprefers buses", ""},
			{"toolu_3_1", true, "Error: The path /memories/b.md does not exist. Please provide a valid path.", ""},
		},
		{{"toolu_4_0", true, "Error: The path /memories/no.md does not exist", ""}},
	} {
		r := fake.requests[i]
		if len(r.Tools) != 1 || r.Tools[0].Type != memorytool.Type || r.Tools[0].Name != memorytool.Name {
			t.Errorf("request %d: tools %+v", i, r.Tools)
		}
		if len(r.Results) != len(want) {
			t.Fatalf("request %d: %+v", i, r.Results)
		}
		for j := range want {
			if r.Results[j] != want[j] {
				t.Errorf("request %d: %+v, want %+v", i, r.Results[j], want[j])
			}
		}
	}
	n, err := st.Notes().Read(t.Context(), "a.md")
	if err != nil || string(n.Content) != "prefers buses\n" {
		t.Errorf("%q %v", n.Content, err)
	}
}

// TestDemo: the command runs without a key and without the network.
func TestDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "storage")
	if err := start(t.Context(), dir, "agents/ada", "fake", true, "I prefer trains."); err != nil {
		t.Fatal(err)
	}
	st, err := varve.Open(t.Context(), dir, &varve.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	n, err := st.Notes().Read(t.Context(), "agents/ada/user.md")
	if err != nil || string(n.Content) != "# The user\n\n- I prefer trains.\n" {
		t.Errorf("%q %v", n.Content, err)
	}
}
