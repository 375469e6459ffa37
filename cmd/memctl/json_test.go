package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// shape is a document as docs/json.md draws it: the members of an object, or of the
// objects in a list. open: there may be others.
type shape struct {
	members  map[string]*shape
	optional map[string]bool
	open     bool
}

// parseShape reads {"a", ?"b": {…}, "c": [{"d"}]}.
func parseShape(s string) (*shape, string) {
	s = strings.TrimLeft(s, " ")
	switch {
	case strings.HasPrefix(s, "["):
		in, rest := parseShape(s[1:])
		_, rest, _ = strings.Cut(rest, "]")
		return in, rest
	case !strings.HasPrefix(s, "{"):
		return nil, s
	}
	sh := &shape{members: map[string]*shape{}, optional: map[string]bool{}}
	for s = s[1:]; ; {
		s = strings.TrimLeft(s, ", ")
		if rest, ok := strings.CutPrefix(s, "}"); ok {
			return sh, rest
		}
		if rest, ok := strings.CutPrefix(s, "…"); ok {
			sh.open, s = true, rest
			continue
		}
		word, optional := strings.CutPrefix(s, "?")
		name, rest, ok := strings.Cut(strings.TrimPrefix(word, `"`), `"`)
		if !ok {
			return sh, s
		}
		sh.optional[name] = optional
		var in *shape
		if after, ok := strings.CutPrefix(rest, ":"); ok {
			in, rest = parseShape(after)
		}
		sh.members[name] = in
		s = rest
	}
}

func (sh *shape) check(t *testing.T, at string, v any) {
	switch v := v.(type) {
	case []any:
		for _, in := range v {
			sh.check(t, at+"[]", in)
		}
	case map[string]any:
		if sh == nil {
			t.Errorf("%s is an object: %v", at, v)
			return
		}
		for name, in := range v {
			known, ok := sh.members[name]
			switch {
			case !ok && !sh.open:
				t.Errorf("%s has %q, which docs/json.md does not name", at, name)
			case known != nil:
				known.check(t, at+"."+name, in)
			}
		}
		for name := range sh.members {
			if _, ok := v[name]; !ok && !sh.optional[name] {
				t.Errorf("%s lacks %q: %v", at, name, v)
			}
		}
	}
}

func drawnShapes(t *testing.T) map[string]*shape {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]*shape{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z -]*[a-z]) {2,}(\{.*\})$`).FindAllStringSubmatch(string(text),
		-1) {
		sh, rest := parseShape(m[2])
		if rest != "" {
			t.Errorf("%s: %q is left", m[1], rest)
		}
		shapes[m[1]] = sh
	}
	return shapes
}

// Every command gives the document that docs/json.md draws, when it works and when not.
func TestJSONDocuments(t *testing.T) {
	shapes := drawnShapes(t)
	c := newCLI(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	file := func(name, text string) string {
		path := filepath.Join(c.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	seen := map[string]bool{}
	document := func(stdin string, args ...string) (int, map[string]any) {
		t.Helper()
		code, out, _ := c.run(stdin, append(args, "--json")...)
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatalf("%v: %v: %q", args, err, out)
		}
		if !strings.HasSuffix(out, "}\n") || strings.Count(out, "\n") != 1 {
			t.Errorf("%v: not one line: %q", args, out)
		}
		return code, v
	}
	try := func(row, stdin string, args ...string) map[string]any {
		t.Helper()
		code, v := document(stdin, append(strings.Fields(row), args...)...)
		delete(v, "error") // of what is damaged, or of some of many
		if len(v) == 0 {
			t.Fatalf("%s %v: exit %d", row, args, code)
		}
		if seen[row] = true; shapes[row] == nil {
			t.Fatalf("docs/json.md has no %q", row)
		}
		shapes[row].check(t, row, v)
		return v
	}
	in := func(name string) string { return filepath.Join(c.dir, name) }
	whole := "--scope=session:s1"

	try("init", "", in("other"))
	try("status", "")
	try("put", "", "one", "--id", "a", "--session", "s1", "--ttl", "1h", "--embedding", "[1,0]")
	try("put", `{"id":"b","content":"two"} {"id":"c","content":"three","embedding":[0,1]}`, "--json-input", "-")
	a1 := try("get", "", "a")["memories"].([]any)[0].(map[string]any)["version"]
	version, err := json.Marshal(a1)
	if err != nil {
		t.Fatal(err)
	}
	try("put", "", "one more", "--id", "a", "--session", "s1")
	try("list", "", "--limit", "2")
	try("search", "", "two")
	try("search", "", "--like", "c")
	try("history", "", "a")
	try("log", "")
	try("undo", "", "--yes")
	try("undo", "", "--yes")
	try("diff", "", "a@"+string(version), "a")
	try("revert", "", "a", string(version))
	try("watch", "", "--since", "0", "--limit", "1")
	file(filepath.Join("storage", "memories", "b.json"), `{"id":"b","content":"by hand"}`)
	try("watch --adopt", "", "--limit", "1")
	try("sessions list", "")
	try("sessions show", "", "s1")
	try("sessions sweep", "", "--older-than", "1ns")
	try("assembly put", "", "a", "b", "--id", "g")
	try("assembly put", `[{"assembly_id":"h","memory_ids":["a"]},{"assembly_id":"i"}]`, "--json-input", "-")
	try("assembly list", "")
	try("assembly show", "", "g")
	try("assembly add", "", "g", "c")
	try("assembly remove", "", "g", "c")
	try("assembly activate", "", "g")
	try("assembly merge", "", "g", "h")
	try("assembly rm", "", "i")
	try("note write", "text\n", "f/n.md", "--if-absent")
	try("note append", "more\n", "f/n.md")
	try("note edit", "", "f/n.md", "--old", "more", "--new", "less")
	try("note ls", "")
	try("note ls", "", "--depth", "1")
	try("note cat", "", "f/n.md")
	try("note grep", "", "less")
	try("note mv", "", "f", "g")
	try("note log", "", "g/n.md")
	try("note diff", "", "g/n.md")
	try("note rm", "", "g/n.md")
	try("note restore", "", "g/n.md")
	try("note export", "", in("exported"))
	try("note import", "", in("exported"), "--into", "again")
	try("note adopt", "", in("exported"))
	try("status", "")
	try("note release", "", in("exported"))
	try("working set", "", "k", "1", whole, "--ttl", "1h")
	try("working get", "", "k", whole)
	try("working keys", "", whole)
	try("working task", "", "--description", "d", whole)
	try("working scratchpad append", "", "n", whole)
	try("working scratchpad list", "", whole)
	first := try("working checkpoint create", "", "before", whole)["checkpoint"].(map[string]any)["id"].(string)
	try("working set", "", "k2", "[2]", whole)
	try("working checkpoint list", "", whole)
	try("working checkpoint show", "", first, whole)
	try("working checkpoint diff", "", first, whole)
	try("working checkpoint restore", "", first, whole)
	try("working checkpoint rm", "", first, whole)
	try("working scratchpad clear", "", whole)
	try("working list", "")
	try("working export", "", "--file", in("working.jsonl"))
	try("working stats", "", whole)
	try("working rm", "", "k", whole)
	try("working rm --all", "", whole)
	try("working drop", "", whole)
	try("export", "", "--file", in("all.jsonl"))
	try("import", "", in("all.jsonl"))
	try("import", "", file("bad.jsonl", "{\"id\":\"d\",\"content\":\"x\"}\n{\n"), "--from", "jsonl")
	try("config", "")
	try("config list", "")
	try("config get", "", "max_age")
	try("config set", "", "max_memories", "1000")
	try("config unset", "", "max_memories", "max_age")
	try("status", "")
	try("flush", "")
	try("rebuild-index", "")
	try("reindex --cancel", "")
	try("backup", "", in("backup"))
	try("backup", "", "--packed", in("packed"))
	try("backup", "", "--check", in("backup"))
	try("backup", "", "--check", in("packed"))
	try("restore", "", in("backup"), in("restored"))
	try("doctor", "")
	try("verify", "")
	try("repair", "")
	file(filepath.Join("storage", "memories", "b.json"), "spoilt")
	try("verify", "")
	try("repair", "")
	try("repair --apply", "")
	aside := try("quarantine list", "")["quarantine"].([]any)[0].(map[string]any)["name"].(string)
	try("quarantine show", "", aside)
	try("quarantine show --raw", "", aside, "--file", in("aside"))
	file(filepath.Join("storage", "quarantine", "whole.json"), `{"id":"whole","content":"x"}`)
	try("quarantine restore", "", "whole.json")
	try("quarantine drop", "", aside, "whole.json", "--yes")
	try("project list", "")
	try("project merge", "", "prj-11111111111111111111111111111111", "shared")
	try("version", "")
	try("manual", "", in("man"))
	try("help", "")
	try("put", "", "newer", "--id", "c")
	old := try("history", "", "c")["versions"].([]any)[0].(map[string]any)["version"].(float64)
	try("purge --version", "", strconv.FormatFloat(old, 'f', 0, 64), "c", "--yes")
	try("history", "", "c")
	try("purge", "", "c", "--yes")
	try("put", "", "of a session", "--id", "s", "--session", "leaky")
	try("purge", "", "--session", "leaky", "--yes")
	try("rm", "", "b")
	try("undelete", "", "b")
	try("sessions rm", "", "s1", "--yes")
	place := "file://" + filepath.ToSlash(in("elsewhere"))
	try("remote add", "", place)
	try("remote status", "")
	try("remote verify", "")
	try("remote snapshots", "")
	try("clone", "", place, in("cloned"))
	try("remote take", "", place)
	try("remote remove", "")
	try("migrate", "", "--to", in("moved"), "--switch")

	// What needs a service, an editor or the program itself is in the scripts.
	elsewhere := []string{"edit", "demo", "reindex", "reindex --missing", "service install", "service uninstall", "project join", "project move",
		"remote follow"}
	for row := range shapes {
		if !seen[row] && !slices.Contains(elsewhere, row) {
			t.Errorf("%q is not tried", row)
		}
	}
	var walk func(cmd *cobra.Command, path string)
	walk = func(cmd *cobra.Command, path string) {
		for _, sub := range cmd.Commands() {
			name := strings.TrimPrefix(path+" "+sub.Name(), " ")
			if sub.Runnable() && !sub.Hidden && shapes[name] == nil &&
				!slices.Contains([]string{"mcp", "serve", "ui", "completion"}, strings.Fields(name)[0]) &&
				!slices.Contains([]string{"assembly", "note", "project", "quarantine", "remote", "service", "sessions", "working",
					"working checkpoint",
					"working scratchpad"}, name) {
				t.Errorf("docs/json.md has no %q; it has %q", name, slices.Sorted(maps.Keys(shapes)))
			}
			walk(sub, name)
		}
	}
	walk((&cli.App{Environment: cli.System()}).Program(root), "")
}

// A conflict says in JSON too what was expected and what was found.
func TestJSONOfAConflict(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "x", "--id", "a")
	code, out, _ := c.run("", "put", "y", "--id", "a", "--if-absent", "--json")
	var d struct{ Error cli.Failure }
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != cli.CodeConflict {
		t.Fatalf("%d, %v: %s", code, err, out)
	}
	if f := d.Error.Conflict; f == nil || f.ID != "a" || f.Expected != 0 || f.Found == 0 {
		t.Errorf("%s", out)
	}
}
