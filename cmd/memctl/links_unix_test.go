//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// secret is in each file outside of the store, and must be nowhere in it.
const secret = "PRIVATE-b3Blbn"

// linkPlaces are where a folder is, or may be, in a store.
var linkPlaces = []string{
	"tmp", "tmp/parked", "tmp/purge", "tmp/4242-1f-0123456789ab", "tmp/0123456789abcdef", "tmp/4242-1f-0123456789ab/0",
	"memories", "memories/sub", "assemblies", "working", "quarantine", "quarantine/sub",
	"backups", "backups/old", "vector_index", "wal", "wal/archive",
}

// linkTargets are what a link there leads to: a folder beside the store, nothing, itself, a
// folder of the store.
var linkTargets = map[string]func(outside, link string) string{
	"outside":  func(outside, _ string) string { return outside },
	"dangling": func(outside, _ string) string { return outside + "-none" },
	"loop":     func(_, link string) string { return filepath.Base(link) },
	"inside": func(_, link string) string {
		if filepath.Base(link) == "assemblies" {
			return filepath.Join(filepath.Dir(link), "memories")
		}
		return filepath.Join(linkStore(link), "assemblies")
	},
}

// linkStore is the store that a place is in.
func linkStore(link string) string {
	return link[:strings.LastIndex(link, "storage")+len("storage")]
}

// linkCommands are run one by one, each on a store of its own.
func linkCommands(c *inProcess) [][]string {
	return [][]string{
		{"put", "new", "--id", "new"}, {"get", "a"}, {"list"}, {"search", "one"}, {"rm", "a"}, {"purge", "a", "--yes"},
		{"flush"}, {"verify"}, {"status"}, {"rebuild-index"}, {"backup", filepath.Join(c.dir, "backup")},
		{"backup", filepath.Join(c.store(), "backups", "old")}, {"reindex"}, {"reindex", "--cancel"},
		{"sessions", "sweep", "--older-than", "1ns", "--apply"}, {"assembly", "list"}, {"note", "ls"}, {"working", "list"},
		{"working", "set", "--scope", "session:s1", "k", "v"},
		{"history", "a"}, {"log"}, {"undo", "--yes"}, {"export", "--file", filepath.Join(c.dir, "out.jsonl")},
		{"migrate", "--to", filepath.Join(c.dir, "moved"), "--switch"},
		{"remote", "add", "file://" + filepath.Join(c.dir, "elsewhere")}, {"remote", "status"}, {"remote", "remove"},
		{"repair"}, {"repair", "--apply"}, {"watch", "--since", "0"},
		{"quarantine", "list"}, {"quarantine", "show", "a.json"}, {"quarantine", "restore", "a.json"},
		{"quarantine", "drop", "a.json", "--yes"},
	}
}

// outsideFiles makes the folder beside the store: what a person has, and what a store
// would take for its own.
func outsideFiles(t *testing.T, c *inProcess, dir string) {
	t.Helper()
	doc := func(id string) string {
		return `{"id":"` + id + `","content":"` + secret + `","metadata":{}}`
	}
	for name, text := range map[string]string{
		"id_rsa": secret, "config": secret, "sub/deep": secret, "0/deep": secret, "a.json": doc("a"), "x.json": doc("x"),
		"mapping.json": secret, "memory_vectors.faiss": secret, "00000001.wal": secret, "0000000000000001.wal": secret,
		"open.lock": "", "flush.lock": "", "shared": secret, "owner": secret, "backup.json": secret, "index.1": secret,
		"0000000000000001.zst": secret, "1.zst": secret, "purge.manifest": secret, "memory_index.5.json": secret,
		"computed.jsonl": secret,
		"repair-99990101T000000Z-00000000.undo.jsonl": secret, "a.json.note.json": secret, "s1.json": secret,
		"memories@a.json@5@5@5@x-1": secret,
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, name := range append(tree(t, dir), ".") {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
}

// snapshot is all of a folder: names, kinds, modes, times and bytes.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range tree(t, dir) {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %d", name, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(data))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// holding are the files below a folder that hold the secret, links not followed.
func holding(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// linked is a copy of a store with a link in one place. What was there is gone, as in a
// clone that has the link instead.
func linked(t *testing.T, template, place, target string) (c *inProcess, outside string) {
	t.Helper()
	c = &inProcess{t, t.TempDir()}
	if err := os.CopyFS(c.dir, os.DirFS(template)); err != nil {
		t.Fatal(err)
	}
	outside = filepath.Join(c.dir, "outside")
	outsideFiles(t, c, outside)
	link := filepath.Join(c.store(), filepath.FromSlash(place))
	if err := os.RemoveAll(link); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(linkTargets[target](outside, link), link); err != nil {
		t.Fatal(err)
	}
	return c, outside
}

// linkTemplate is a folder with a store that has all folders.
func linkTemplate(t *testing.T) string {
	t.Helper()
	c := newCLI(t)
	c.ok("put", "one", "--id", "a", "--session", "s1")
	c.ok("put", "two", "--id", "b", "--session", "s1")
	writeFile(t, filepath.Join(c.dir, "in.jsonl"), `{"id":"v","content":"three","embedding":[1,2,3,4]}`+"\n")
	c.ok("import", filepath.Join(c.dir, "in.jsonl"))
	c.ok("working", "set", "--scope", "session:s1", "k", "1")
	c.ok("assembly", "put", "--id", "both", "a", "b")
	c.ok("put", "again", "--id", "b")
	c.ok("flush")
	return c.dir
}

// bounded runs a command for at most a while. service is for memctl reindex.
func (c *inProcess) bounded(d time.Duration, service string, args ...string) (code int, out, errOut string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), d)
	defer cancel()
	var o, e bytes.Buffer
	env := cli.Environment{
		Getenv: func(name string) string {
			if args[0] != "reindex" {
				return ""
			}
			return map[string]string{"VARVE_EMBED_URL": service, "VARVE_EMBED_MODEL": "bag",
				"VARVE_EMBED_KEY": "sk-secret"}[name]
		},
		Getwd: func() (string, error) { return c.dir, nil }, Clock: time.Now,
	}
	code = run(ctx, args, strings.NewReader(""), &o, &e, env)
	return code, o.String(), e.String()
}

// A link in the place of any folder of a store is not followed by any command: what it leads
// to stays as it is, in all of its bytes, names and times, and nothing of it gets into the
// store.
func TestLinksInside(t *testing.T) {
	t.Parallel()
	template := linkTemplate(t)
	service := embeddingService(4)
	t.Cleanup(service.Close)
	n := 0
	for _, place := range linkPlaces {
		for _, target := range slices.Sorted(maps.Keys(linkTargets)) {
			for i := range linkCommands(&inProcess{t, ""}) {
				n++
				// All 1,632 take minutes: VARVE_LONG=1. Every place and every command is among those of .ci/run.
				if n%proofs.Every(23) != 0 {
					continue
				}
				args := linkCommands(&inProcess{t, ""})[i]
				t.Run(fmt.Sprintf("%s/%s/%02d-%s", place, target, i, args[0]), func(t *testing.T) {
					t.Parallel()
					c, outside := linked(t, template, place, target)
					args := linkCommands(c)[i]
					before := snapshot(t, outside)
					most := time.Minute
					if args[0] == "watch" {
						most = 200 * time.Millisecond
					}
					code, out, errOut := c.bounded(most, service.URL, append(args, "--store", c.store())...)
					t.Logf("%v: exit code %d\n%s%s", args, code, out, errOut)
					if after := snapshot(t, outside); after != before {
						t.Errorf("what is outside has changed:\n%s\nwas\n%s%s", after, before, errOut)
					}
					for _, dir := range []string{"storage", "backup", "moved"} {
						if dir = filepath.Join(c.dir, dir); isFolder(dir) {
							if list := holding(t, dir); len(list) > 0 {
								t.Errorf("taken in from outside: %v\n%s%s", list, out, errOut)
							}
						}
					}
					if strings.Contains(out+errOut, secret) {
						t.Errorf("shown: %s%s", out, errOut)
					}
					if code == cli.CodeInternal {
						t.Errorf("exit code %d: %s", code, errOut)
					}
				})
			}
		}
	}
}

// A link in the place of a folder keeps nobody from his memories: what is not to be had
// without it names it, what it costs and the remedy; verify names it; repair --apply moves
// the link, and afterwards everything works.
func TestLinksHealed(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	template := linkTemplate(t)
	n := 0
	for _, place := range linkPlaces {
		for _, target := range slices.Sorted(maps.Keys(linkTargets)) {
			if n++; !proofs.Long() && n%3 != 0 { // each place once, and each target
				continue
			}
			t.Run(place+"/"+target, func(t *testing.T) {
				t.Parallel()
				c, outside := linked(t, template, place, target)
				before := snapshot(t, outside)
				in := func(args ...string) (int, string) {
					code, out, errOut := c.bounded(time.Minute, "", append(args, "--store", c.store())...)
					return code, out + errOut
				}
				named := place
				switch {
				case strings.HasPrefix(place, "quarantine/"):
					named = "" // what was set aside may be a link
				case strings.Count(place, "/") > 1:
					named = filepath.Dir(place)
				}
				if code, said := in("verify"); !strings.Contains(said, named) {
					t.Errorf("verify does not name it: %d %s", code, said)
				}
				code, said := in("put", "new", "--id", "new")
				if strings.HasPrefix(place, "tmp/") && code != cli.CodeOK {
					t.Errorf("nothing in tmp/ is worth stopping for: put: %d %s", code, said)
				}
				if code != cli.CodeOK && (code != cli.CodeDamage || !strings.Contains(said, place+" is a symbolic link") ||
					!strings.Contains(said, "memctl repair --apply")) {
					t.Errorf("put: %d %s", code, said)
				}
				t.Logf("put: %d %s", code, said)
				code, said = in("repair", "--apply")
				t.Logf("repair: %d %s", code, said)
				if code, said := in("verify"); code != cli.CodeOK {
					t.Errorf("verify after repair: %d %s", code, said)
				}
				for _, args := range [][]string{
					{"put", "newer", "--id", "newer"}, {"get", "a"}, {"get", "newer"}, {"search", "one"}, {"rm", "b"}, {"flush"},
					{"purge", "newer", "--yes"}, {"rebuild-index"}, {"backup", filepath.Join(c.dir, "backup")}, {"verify"},
				} {
					if code, said := in(args...); code != cli.CodeOK {
						t.Errorf("%v: %d %s", args, code, said)
					}
				}
				if after := snapshot(t, outside); after != before {
					t.Errorf("what is outside has changed:\n%s\nwas\n%s", after, before)
				}
				if list := append(holding(t, c.store()), holding(t, filepath.Join(c.dir, "backup"))...); len(list) > 0 {
					t.Errorf("taken in from outside: %v", list)
				}
			})
		}
	}
}

// A person's own link is moved like any other, and nothing that is only behind it is given
// up in the same repair: put back as a folder, all is there.
func TestLinkToTheOnlyCopy(t *testing.T) {
	t.Parallel()
	c := &inProcess{t, t.TempDir()}
	if err := os.CopyFS(c.dir, os.DirFS(linkTemplate(t))); err != nil {
		t.Fatal(err)
	}
	memories, disk := filepath.Join(c.store(), "memories"), filepath.Join(c.dir, "disk")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.RemoveAll(filepath.Join(c.store(), "wal"))) // as in a clone: the files are the only copy
	c.ok("flush")
	must(os.Rename(memories, disk))
	must(os.Symlink(disk, memories))
	code, out, errOut := c.run("", "repair", "--apply")
	if code != cli.CodeLost || !strings.Contains(out+errOut, "make room for the folder memories") ||
		strings.Contains(out, "record as lost memories/a.json: ") {
		t.Errorf("repair: %d %s%s", code, out, errOut)
	}
	must(os.RemoveAll(memories))
	must(os.Rename(disk, memories))
	c.ok("verify")
	for _, id := range []string{"a", "b", "v"} {
		c.ok("get", id)
	}
}
