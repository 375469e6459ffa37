package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// private are words that a report of doctor must not have: parts of contents, ids, names, paths and secrets.
var private = []string{"CANARYTEXT", "canaryid", "canarykey", "canarysession", "canaryproject", "canarynote",
	"canaryuser",
	"canaryhome", "canaryagent", "canarysecret", "canarymodel", "canaryhost", "canarymeta", "canaryfolder"}

// doctored is memctl doctor in an environment full of names.
func doctored(t *testing.T, dir, store string, embeds bool, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	set := map[string]string{"HOME": filepath.Join(dir, "canaryhome"), "USER": "canaryuser", "VARVE_AGENT": "canaryagent",
		"VARVE_SESSION": "canarysession", "VARVE_EMBED_URL": "http://canaryuser:canarysecret@127.0.0.1:1/canaryhost",
		"VARVE_EMBED_MODEL": "canarymodel", "VARVE_EMBED_KEY": "canarysecret"}
	if !embeds { // each call asks a service that does not answer until its time is over
		delete(set, "VARVE_EMBED_URL")
	}
	env := cli.Environment{
		Getenv: func(name string) string { return set[name] },
		Getwd:  func() (string, error) { return dir, nil },
		Clock:  time.Now,
	}
	code = run(t.Context(), append([]string{"doctor", "--store", store}, args...), strings.NewReader(""), &stdout, &stderr,
		env)
	return code, stdout.String(), stderr.String()
}

// state is what a folder has: names, modes, times and bytes.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += string(b)
		}
		all[path] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// secretive makes a store whose every name is private.
func secretive(t *testing.T) (dir, store string) {
	t.Helper()
	dir = t.TempDir()
	store = filepath.Join(dir, "canaryfolder")
	st, err := varve.Open(t.Context(), store, &varve.Options{Writer: &varve.Writer{Program: "test", Agent: "canaryagent"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		m := varve.Memory{ID: fmt.Sprintf("canaryid %d", i), Content: fmt.Sprintf("CANARYTEXT %d", i),
			Metadata: map[string]any{"session_id": "canarysession", "key": "canarykey", "varve_project": "canaryproject",
				"source": "canarymeta"}}
		if _, err := st.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Notes().Write(t.Context(), "canarynote 1/my canarynote.md", []byte("CANARYTEXT")); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Assemblies().Put(t.Context(), varve.Assembly{ID: "canaryid", Name: "canarykey",
		MemoryIDs: []string{"canaryid 1"}}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, store
}

// TestDoctor: a report on a store in each state has what a maintainer asks for and nothing private, names what helps
// first, and changes nothing.
func TestDoctor(t *testing.T) {
	t.Parallel()
	file := func(store, pattern string) string {
		found, err := filepath.Glob(filepath.Join(store, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		slices.Sort(found)
		return found[0]
	}
	spoil := func(pattern string) func(t *testing.T, store string) {
		return func(t *testing.T, store string) {
			name := file(store, pattern)
			b, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(name, append(b[:len(b)/2], "CANARYTEXT"...), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		do    func(t *testing.T, store string)
		parts []string
	}{
		{"sound", nil, []string{"found, by --store; owner: this user", "20 memories", "no findings",
			"embedding service", "variables   VARVE_"}},
		{"a memory", spoil("memories/*.json"), []string{"damage: ", "memctl repair"}},
		{"an assembly", spoil("assemblies/*.json"), []string{"verify ", "memctl repair"}},
		{"the index", spoil("memory_index.json"), []string{"wrong ", "memctl"}},
		{"the log", spoil("wal/0*.wal"), []string{"wrong ", "memctl"}},
		{"the checkpoint", spoil("checkpoint"), []string{"wrong "}},
		{"the settings", spoil("config.json"), []string{"wrong ", "config.json"}},
		{"other settings", func(t *testing.T, store string) {
			writeFile(t, filepath.Join(store, "config.json"), `{"varve":1,"max_memories":5000,"notes_ignore":["canarynote*"],`+
				`"at_limit":"evict_oldest","vectors":{"query_template":"canarysecret {query}"}}`)
		}, []string{"max_memories 5000", "at_limit evict_oldest", "notes_ignore set"}},
		{"a foreign file", func(t *testing.T, store string) {
			writeFile(t, filepath.Join(store, "memories", "canaryid x.json"), "CANARYTEXT")
			writeFile(t, filepath.Join(store, "canaryfolder", "canarynote.md"), "CANARYTEXT")
		}, []string{"other files"}},
		{"no log", func(t *testing.T, store string) {
			if err := os.RemoveAll(filepath.Join(store, "wal")); err != nil {
				t.Fatal(err)
			}
		}, []string{"wrong ", "memctl"}},
		{"no store", func(t *testing.T, store string) {
			if err := os.RemoveAll(store); err != nil {
				t.Fatal(err)
			}
		}, []string{"not found", "memctl init"}},
		{"in use", func(t *testing.T, store string) {
			st, err := varve.Open(t.Context(), store, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			if _, err := st.Put(t.Context(), varve.Memory{ID: "canaryid new", Content: "CANARYTEXT"}); err != nil {
				t.Fatal(err)
			}
		}, []string{"1 have the store open for writing", "21 memories"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, store := secretive(t)
			if c.do != nil {
				c.do(t, store)
			}
			var before map[string]string
			_, err := os.Stat(store)
			if there := err == nil; there {
				before = state(t, store)
			}
			for _, args := range [][]string{{}, {"--json"}, {"--full"}} {
				code, out, errOut := doctored(t, dir, store, c.do == nil, args...)
				if code != cli.CodeOK || errOut != "" {
					t.Errorf("%q: exit code %d: %s", args, code, errOut)
				}
				for _, word := range private {
					if strings.Contains(strings.ToLower(out), strings.ToLower(word)) {
						t.Errorf("%q: %s is in\n%s", args, word, out)
					}
				}
				if strings.Contains(out, dir) {
					t.Errorf("%q: the folder is in\n%s", args, out)
				}
				if len(args) > 0 && args[0] == "--json" {
					var d struct {
						Next  string
						Wrong []struct{ Fix string }
					}
					if err := json.Unmarshal([]byte(out), &d); err != nil || d.Next == "" ||
						len(d.Wrong) > 0 && d.Next != d.Wrong[0].Fix {
						t.Errorf("%v: %s", err, out)
					}
					continue
				}
				for _, part := range append(c.parts, "memctl ", "system ", "limits ", "volume ", "\nnext ") {
					if !strings.Contains(out, part) {
						t.Errorf("%q: %q is missing in\n%s", args, part, out)
					}
				}
			}
			if before == nil || c.name == "in use" { // the other process writes
				return
			}
			now := state(t, store)
			for path, was := range before {
				if now[path] != was {
					t.Errorf("%s was changed", path)
				}
			}
			if len(now) != len(before) {
				t.Errorf("%d files, before %d", len(now), len(before))
			}
		})
	}
}
