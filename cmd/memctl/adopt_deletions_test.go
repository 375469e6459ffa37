package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// FAILURES 184: with adopt_deletions false a file that was deleted by hand is restored by the next command
// that may write, whichever it is, from the log or from the archive; where neither has it, that is said.
func TestDeletedIsRestored(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	dir := filepath.Join(c.dir, "small")
	run := func(args ...string) string {
		t.Helper()
		code, out, errOut := c.run("", append(args, "--store", dir)...)
		if code != cli.CodeOK {
			t.Fatalf("%q: exit code %d: %s%s", args, code, out, errOut)
		}
		return out + errOut
	}
	c.ok("init", dir, "--segment-size", "65536")
	run("config", "set", "adopt_deletions", "false")
	run("put", "text of one", "--id", "m1")
	run("put", "text of two", "--id", "m2")
	run("flush")
	// The log moves on: m1 is in the archive alone.
	r := rand.New(rand.NewPCG(1, 2))
	var lines strings.Builder
	for i := range 300 {
		text := make([]byte, 3000)
		for j := range text {
			text[j] = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789"[r.IntN(64)]
		}
		line, _ := json.Marshal(map[string]any{"id": fmt.Sprint("fill-", i), "content": string(text)})
		lines.Write(append(line, '\n'))
	}
	fill := filepath.Join(c.dir, "fill.jsonl")
	if err := os.WriteFile(fill, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run("import", fill)
	run("flush")
	run("put", "text of three") // a process releases what was in files and index when it opened the log
	archived, err := filepath.Glob(filepath.Join(dir, "wal", "archive", "00000001.zst"))
	if err != nil || len(archived) != 1 {
		t.Fatalf("the log has not moved on: %q, %v", archived, err)
	}
	file := filepath.Join(dir, "memories", "m1.json")
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, next := range [][]string{{"put", "something else"}, {"get", "m2"}, {"list", "--limit", "1"}, {"flush"}} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		out := run(next...)
		if now, err := os.ReadFile(file); err != nil || string(now) != string(was) {
			t.Fatalf("%q: %v: %s", next, err, out)
		}
		if !strings.Contains(out, "memories/m1.json") {
			t.Errorf("%q does not say what it restored: %s", next, out)
		}
	}
	if out := run("verify"); !strings.Contains(out, "no damage found") {
		t.Error(out)
	}
	// Said each time, until a repair records that it is lost.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(archived[0]); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if out := run("put", "something more"); !strings.Contains(out, "memories/m1.json") || !strings.Contains(out, "the log no longer has the version") {
			t.Errorf("not said: %s", out)
		}
	}
	if out := run("repair", "--apply"); !strings.Contains(out, "record as lost memories/m1.json") {
		t.Error(out)
	}
	if out := run("put", "one more"); strings.Contains(out, "m1.json") {
		t.Error(out)
	}
}
