package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// TestSealedCopy verifies what a user does with a sealed copy: add it, verify it, clone it, take it, change its
// recipients. The place has nothing of the store, and no other identity or key of a machine is accepted.
func TestSealedCopy(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	c := newCLI(t)
	var lines strings.Builder
	for i := range 50 {
		fmt.Fprintf(&lines, `{"id":"secret-id-%d","content":"classified text %d",`+
			`"embedding":[0.123456,-0.654321,0.777777],"metadata":{"session_id":"hidden-session","speaker":"Mata Hari"}}`+"\n", i, i)
	}
	writeFile(t, filepath.Join(c.dir, "lines.jsonl"), lines.String())
	c.ok("--store", c.store(), "import", filepath.Join(c.dir, "lines.jsonl"))
	first, one := identity(t, c.dir, "first.txt")
	second, two := identity(t, c.dir, "second.txt")
	third, three := identity(t, c.dir, "third.txt")
	folder := filepath.Join(c.dir, "copy")
	url := "file://" + filepath.ToSlash(folder)
	in := func(args ...string) []string { return append([]string{"--store", c.store()}, args...) }
	refused := func(code int, says string, args ...string) {
		t.Helper()
		got, out, errOut := c.run("", args...)
		if got != code || !strings.Contains(errOut, says) || strings.Contains(out+errOut, "AGE-SECRET-KEY-1") {
			t.Errorf("%v: exit code %d, %s%s", args, got, out, errOut)
		}
	}
	const usage = 64
	refused(usage, "give a second --recipient", in("remote", "add", url, "--recipient", one)...)
	refused(usage, "not a public key", in("remote", "add", url, "--recipient", one, "--recipient", "age1x")...)
	c.ok(in("remote", "add", url, "--recipient", one, "--recipient", two)...)
	key := regexp.MustCompile(`ed25519-[\w-]{43}`)
	status := c.ok(in("remote", "status")...)
	signer := key.FindString(status)
	if signer == "" || !strings.Contains(status, "sealed for 2 recipients") {
		t.Fatal(status)
	}
	c.ok(in("put", "classified as well", "--id", "later")...)
	c.ok(in("remote", "add", url, "--recipient", two, "--recipient", one)...) // sends what was written
	refused(cli.CodeRefused, "is sealed", in("remote", "add", url)...)
	for _, args := range [][]string{{}, {"--read-data"}, {"--read-data", "--identity", first}} {
		if out := c.ok(in(append([]string{"remote", "verify"}, args...)...)...); !strings.Contains(out, "1 snapshot") {
			t.Error(out)
		}
	}
	hidden(t, folder, "secret-id", "classified", "hidden-session", "Mata", "memories/", "varvepk", "0.123456",
		"config.json")

	to := filepath.Join(c.dir, "clone")
	stranger, _ := identity(t, c.dir, "stranger.txt")
	refused(cli.CodeRefused, "--identity FILE", "clone", url, to)
	refused(cli.CodeRefused, "--signer "+signer, "clone", url, to, "--identity", first)
	refused(cli.CodeRefused, "no identity in", "clone", url, to, "--identity", stranger, "--signer", signer)
	refused(cli.CodeRefused, "--signer "+signer, "clone", url, to, "--identity", first, "--signer",
		"ed25519-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	refused(cli.CodeRefused, "had reached 1:99999999 before", "clone", url, to, "--identity", first,
		"--signer", signer, "--known", "1:99999999")
	refused(usage, "needs --identity", "clone", url, to, "--signer", signer)
	if _, err := os.Stat(to); err == nil {
		t.Error("a refused clone left a folder")
	}
	known := regexp.MustCompile(`--known (\d+:\d+)`).FindStringSubmatch(status)
	_, _, note := c.run("", in("remote", "status")...)
	if known == nil {
		if known = regexp.MustCompile(`--known (\d+:\d+)`).FindStringSubmatch(note); known == nil {
			t.Fatal(note)
		}
	}
	c.ok("clone", url, to, "--identity", second, "--signer", signer, "--known", known[1])
	if out := c.ok("--store", to, "get", "later", "--content"); strings.TrimSpace(out) != "classified as well" {
		t.Errorf("%q", out)
	}
	fork := filepath.Join(c.dir, "fork")
	c.ok("clone", url, fork, "--identity", first, "--signer", signer, "--fork")
	c.ok("--store", fork, "put", "of the fork")

	// The clone takes the copy, and signs with its own key; the store that sent before is refused.
	c.ok("--store", to, "remote", "take")
	taken := key.FindString(c.ok("--store", to, "remote", "status"))
	if taken == "" || taken == signer {
		t.Errorf("the clone signs with %q", taken)
	}
	if code, _, errOut := c.run("", in("remote", "add", url, "--recipient", two, "--recipient", one)...); code == 0 {
		t.Error("the store that was superseded still sends: ", errOut)
	}
	again := filepath.Join(c.dir, "again")
	refused(cli.CodeRefused, "--signer "+taken, "clone", url, again, "--identity", first, "--signer", signer)
	c.ok("clone", url, again, "--identity", first, "--signer", signer, "--signer", taken)

	// With other recipients, the previous ones cannot read what is sent from now on.
	c.ok("--store", to, "put", "for the third", "--id", "new")
	c.ok("--store", to, "remote", "add", url, "--recipient", three, "--single-recipient")
	changed := filepath.Join(c.dir, "changed")
	refused(cli.CodeRefused, "no identity in", "clone", url, changed, "--identity", first, "--signer", signer, "--signer",
		taken)
	c.ok("clone", url, changed, "--identity", third, "--signer", taken)
	if out := c.ok("--store", changed, "get", "new", "--content"); strings.TrimSpace(out) != "for the third" {
		t.Errorf("%q", out)
	}
	hidden(t, folder, "secret-id", "classified", "third", "hidden-session")

	// Without its keys, nothing is sent as plain text.
	id := regexp.MustCompile(`"store": ?"([0-9a-f-]{36})"`).FindStringSubmatch(c.ok("--store", to, "--json", "remote",
		"status"))
	if id == nil {
		t.Fatal("no store in the JSON document")
	}
	keys, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "varve", "copies", id[1]+"-*.keys.json"))
	if err != nil || len(keys) < 2 {
		t.Fatal(keys, err)
	}
	for _, name := range keys {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	c.ok("--store", to, "put", "not to be sent")
	refused(cli.CodeLost, "keys of the sealed copy", "--store", to, "remote", "status")
	hidden(t, folder, "not to be sent")
}

// hidden verifies that no file of a folder contains a text.
func hidden(t *testing.T, folder string, texts ...string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		for _, s := range texts {
			if bytes.Contains(b, []byte(s)) {
				t.Errorf("%s has %q", name, s)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
