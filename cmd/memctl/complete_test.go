package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/complete"
	"github.com/varve-db/varve/cmd/memctl/internal/evil"
	"github.com/varve-db/varve/internal/proofs"
)

// offered are the words that memctl __complete offers for the last argument.
func (c *inProcess) offered(args ...string) []string {
	c.t.Helper()
	code, out, _ := c.run("", append([]string{"__complete"}, args...)...)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if last := lines[len(lines)-1]; code != cli.CodeOK || !strings.HasPrefix(last, ":") {
		c.t.Fatalf("__complete %q: exit code %d: %s", args, code, out)
	}
	return lines[:len(lines)-1]
}

func TestCompletes(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "first\x1b[31m text\nof two lines", "--id", "note-1", "--session", "s1")
	c.ok("put", "x", "--id", "other", "--session", "s2")
	c.ok("put", strings.Repeat("long ", 100), "--id", "note-2", "--session", "s1")
	c.ok("assembly", "put", "note-1", "--id", "group", "--name", "The group")
	c.ok("working", "set", "k", "1", "--scope", "session:s1")
	long := "note-2\t" + strings.Repeat("long ", 11) + "long…"
	for _, w := range []struct {
		args, want []string
	}{
		{[]string{"get", ""}, []string{long, "other\tx", "note-1\tfirst[31m text of two lines"}}, // the last written first
		{[]string{"get", "note"}, []string{"note-1\tfirst[31m text of two lines", long}},
		{[]string{"get", "note-2", "note"}, []string{"note-1\tfirst[31m text of two lines"}},
		{[]string{"get", "none"}, nil},
		{[]string{"history", "o"}, []string{"other\tx"}},
		{[]string{"history", "other", ""}, nil},
		{[]string{"history", "--assembly", ""}, []string{"group\tThe group"}},
		{[]string{"purge", "--working", ""}, []string{"session:s1"}},
		{[]string{"assembly", "add", ""}, []string{"group\tThe group"}},
		{[]string{"assembly", "add", "group", "oth"}, []string{"other\tx"}},
		{[]string{"search", "--like", "oth"}, []string{"other\tx"}},
		{[]string{"sessions", "rm", ""}, []string{"s1\t2 memories", "s2\t1 memory"}},
		{[]string{"list", "--session", "s2"}, []string{"s2\t1 memory"}},
		{[]string{"working", "keys", "--scope", "se"}, []string{"session:s1"}},
		{[]string{"config", "get", "max_ag"}, []string{"max_age"}},
		{[]string{"config", "set", "auto_repair", ""}, []string{"true", "false"}},
		{[]string{"search", "--mode", ""}, []string{"both", "meaning", "words"}},
		{[]string{"watch", "--kind", "a"}, []string{"assembly"}},
		{[]string{"help", "vers"}, []string{"version\tPrint the version of memctl"}},
		{[]string{"put", ""}, nil},
	} {
		if got := c.offered(w.args...); !slices.Equal(got, w.want) && len(got)+len(w.want) > 0 {
			t.Errorf("%q: %q, want %q", w.args, got, w.want)
		}
	}
}

// A name in the tables that is no command, or no flag, would complete nothing, unseen.
func TestCompletionTables(t *testing.T) {
	t.Parallel()
	a := &cli.App{}
	commands, flags := map[string]bool{}, map[string]bool{}
	for _, c := range commandsBelow(a.Program(root)) {
		commands[pathBelow(c)] = true
		for name := range flagValues(a) {
			if _, flag, _ := strings.Cut(name,
				"--"); c.Flags().Lookup(flag) != nil &&
				(strings.HasPrefix(name, "--") || strings.HasPrefix(name, pathBelow(c)+" ")) {
				flags[name] = true
			}
			if _, flag, _ := strings.Cut(name, "--"); c.PersistentFlags().Lookup(flag) != nil {
				flags[name] = true
			}
		}
	}
	for name := range completions(a) {
		if !commands[name] {
			t.Errorf("there is no command %q", name)
		}
	}
	for name := range flagValues(a) {
		if !flags[name] {
			t.Errorf("there is no flag %q", name)
		}
	}
}

// However many memories there are, a bounded number is offered; one that a shell would take for
// something else is not.
func TestCompletionIsBounded(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	var lines strings.Builder
	for i := range 3 * complete.Most {
		fmt.Fprintf(&lines, `{"id":"m%04d","content":"x"}`+"\n", i)
	}
	for _, id := range []string{"$(touch x)", "`id`", "a b", "a;b", "-rf", "a'b", `a"b`, "a\\b", "a|b", "a>b", "*", "~",
		"a\tb", "é-ü", evil.Text} {
		fmt.Fprintf(&lines, `{"id":%s,"content":"odd"}`+"\n", quoted(t, id))
	}
	if code, out, errOut := c.run(lines.String(), "put", "--json-input", "-"); code != cli.CodeOK {
		t.Fatal(out, errOut)
	}
	all := c.offered("get", "")
	if len(all) != complete.Most || !slices.Contains(all, "é-ü\todd") {
		t.Errorf("%d words: %q", len(all), all)
	}
	for _, w := range all {
		if strings.HasSuffix(w, "odd") && w != "é-ü\todd" {
			t.Errorf("offers %q", w)
		}
	}
	if got := c.offered("get", "m00"); len(got) != complete.Most || got[0] != "m0000\tx" {
		t.Errorf("%d words: %q", len(got), got)
	}
	if got := c.offered("get", "m029"); len(got) != 10 {
		t.Errorf("%q", got)
	}
}

// Whatever state the store is in, completing changes nothing and prints nothing but words.
func TestCompletionChangesNothing(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	sound := newCLI(t)
	sound.ok("put", "one", "--id", "a", "--session", "s")
	clone := newCLI(t)
	clone.ok("put", "one", "--id", "a")
	damaged := newCLI(t)
	damaged.ok("put", "one", "--id", "a")
	edited := newCLI(t)
	edited.ok("put", "one", "--id", "a")
	empty := &inProcess{t, t.TempDir()}
	for path, text := range map[string]string{
		filepath.Join(damaged.store(), "memory_index.json"): "spoilt", filepath.Join(damaged.store(), "checkpoint"): "spoilt",
		filepath.Join(edited.store(), "memories", "a.json"): `{"id":"a","content":"by hand"}`,
		filepath.Join(edited.store(), "memories", "b.json"): "{",
	} {
		writeFile(t, path, text)
	}
	for _, path := range []string{"wal", "checkpoint", "memory_index.json"} {
		if err := os.RemoveAll(filepath.Join(clone.store(), path)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]*inProcess{"sound": sound, "clone": clone, "damaged": damaged, "edited": edited,
		"none": empty} {
		before := everything(t, c.dir)
		for _, cmd := range commandsBelow((&cli.App{}).Program(root)) {
			words := []string{"", "a"}
			for _, flag := range []string{"session", "scope", "like", "after"} {
				if cmd.Flags().Lookup(flag) != nil {
					words = append(words, "--"+flag+"=")
				}
			}
			for _, last := range words {
				args := append(strings.Fields(pathBelow(cmd)), last)
				if _, _, errOut := c.run("", append([]string{"__complete"}, args...)...); strings.Contains(errOut, "memctl:") {
					t.Errorf("%s: %q: %s", name, args, errOut)
				}
			}
		}
		if after := everything(t, c.dir); before != after {
			t.Errorf("%s: was changed from\n%s\nto\n%s", name, before, after)
		}
	}
}

// everything is what is in a folder, with times.
func everything(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		var text []byte
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		fmt.Fprintf(&b, "%s %s %s %x\n", path, info.Mode(), info.ModTime(), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
