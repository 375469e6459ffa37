package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// TestIDs: rows 21, 30 and 60 of the failure list: an id is refused by name or
// comes back equal, none meets another, none leaves the folder.
func TestIDs(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	c := newCLI(t)
	before := tree(t, c.dir)
	good := []string{
		"../../etc/passwd", "/etc/passwd", `..\..\windows`, "a/b", "..", ".", "nul\x00byte", "new\nline", "tab\t", " ", "😀", "👩‍👩‍👧",
		strings.Repeat("记忆", 14), "CON", "con", "con.txt", "NUL", "COM1.json", "trailing.", "trailing", ".hidden", "a.json", "a",
		"A", "x:y", "x-y", "x_y", "é", "e\u0301", "ﬁ", "fi", "~", "a~b", "-rf", "--json", "$(id)", "%2e%2e", strings.Repeat("a", 1000) + "1",
		strings.Repeat("a", 1000) + "2", strings.Repeat("长", 341), `"quoted"`, "\u202egnp.exe",
	}
	for _, id := range good {
		text := "the text of " + id
		if code, _, errOut := c.run(`{"id":`+quoted(t, id)+`,"content":`+quoted(t, text)+`}`, "put", "--json-input", "-"); code != cli.CodeOK {
			t.Errorf("put %.80q: exit code %d: %s", id, code, errOut)
		}
	}
	c.ok("flush")
	for _, id := range good {
		var d struct {
			Memories []struct {
				Memory struct{ ID, Content string }
			}
		}
		if err := json.Unmarshal([]byte(c.ok("get", "--json", "--", id)), &d); err != nil {
			t.Fatal(err)
		}
		if m := d.Memories[0].Memory; m.ID != id || m.Content != "the text of "+id {
			t.Errorf("%.80q came back as %.80q, %.80q", id, m.ID, m.Content)
		}
	}
	ids := c.ids()
	slices.Sort(ids)
	want := slices.Sorted(slices.Values(good))
	if !slices.Equal(ids, want) {
		t.Errorf("listed:\n%q\nwant:\n%q", ids, want)
	}
	files := 0
	folded := map[string]bool{}
	for _, path := range tree(t, c.dir) {
		if slices.Contains(before, path) {
			continue
		}
		name, ok := strings.CutPrefix(path, "storage/memories/")
		switch {
		case ok && folded[strings.ToLower(name)]:
			t.Errorf("two ids meet in %s where case is folded", name)
		case ok && filepath.Base(name) != name:
			t.Errorf("%s is not directly in memories/", path)
		case ok:
			files++
			folded[strings.ToLower(name)] = true
		case !strings.HasPrefix(path, "storage/"):
			t.Errorf("%s is outside of the store", path)
		}
	}
	if files != len(good) {
		t.Errorf("%d files for %d ids", files, len(good))
	}
	for _, id := range good {
		c.ok("rm", "--", id)
	}
	if ids := c.ids(); len(ids) != 0 {
		t.Errorf("left after rm: %q", ids)
	}
}

func TestIDsRefused(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for name, input := range map[string]string{
		"empty":        `{"id":"","content":"x"}`,
		"10,000 bytes": `{"id":"` + strings.Repeat("a", 10_000) + `","content":"x"}`,
		"one past it":  `{"id":"` + strings.Repeat("a", 1025) + `","content":"x"}`,
		"no UTF-8":     "{\"id\":\"\xff\",\"content\":\"x\"}",
		"surrogate":    `{"id":"\ud800","content":"x"}`,
		"a number":     `{"id":7,"content":"x"}`,
	} {
		code, _, errOut := c.run(input, "put", "--json-input", "-")
		if code != cli.CodeRefused {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}
		if !strings.Contains(errOut, "id") || len(errOut) > 1000 {
			t.Errorf("%s is not refused by name: %s", name, errOut)
		}
	}
	for _, args := range [][]string{{"put", "x", "--id", ""}, {"put", "x", "--id", strings.Repeat("a", 10_000)}, {"put", "x", "--id", "\xff"}} {
		if code, _, errOut := c.run("", args...); code != cli.CodeRefused {
			t.Errorf("%.80q: exit code %d: %s", args, code, errOut)
		}
	}
	if ids := c.ids(); len(ids) != 0 {
		t.Errorf("something was stored all the same: %q", ids)
	}
	if code, _, errOut := c.run("", "rm", ""); code != 64 || !strings.Contains(errOut, "an id is empty") {
		t.Errorf("rm of no id: exit code %d: %s", code, errOut)
	}
	for id, want := range map[string]int{strings.Repeat("a", 10_000): cli.CodeNotFound, "../../etc/passwd": cli.CodeNotFound, "\xff": cli.CodeRefused} {
		for _, command := range []string{"get", "rm"} {
			if code, _, errOut := c.run("", command, "--", id); code != want {
				t.Errorf("%s %.80q: exit code %d, want %d: %s", command, id, code, want, errOut)
			}
		}
	}
}
