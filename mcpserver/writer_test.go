package mcpserver

import (
	"testing"

	"github.com/varve-db/varve"
)

// What a client has written is by the client, as it named itself; what the process writes beside it is not.
func TestClientIsTheWriter(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host", Agent: "ada"}})
	c := connect(t, st, Options{Groups: []string{Memory, Working}}, nil)
	for tool, args := range map[string]string{
		"remember": `{"text":"the client wrote this"}`, "working_set": `{"session":"s","key":"k","value":"v"}`,
	} {
		if text, _, isError := c.call(tool, args); isError {
			t.Fatal(text)
		}
	}
	if _, err := st.Put(t.Context(), varve.Memory{ID: "own", Content: "the host wrote this"}); err != nil {
		t.Fatal(err)
	}
	for commit, err := range st.Log(t.Context(), varve.LogOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		want := "test"
		if commit.Changes[0].ID == "own" {
			want = ""
		}
		if w := commit.Writer; w.Client != want || w.Agent != "ada" || w.Program != "host" {
			t.Errorf("%+v is by %s", commit.Changes, w)
		}
	}
}
