package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// TestValues: what goes in comes out, from a byte to megabytes.
func TestValues(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	c := newCLI(t)
	cases := map[string]string{
		"one byte": "x", "NUL": "a\x00b", "quotes": `"\"'`, "markup": "<script>&amp;</script>", "marker": "}\n,\"end\":\"",
		"separators": "\u2028\u2029", "4095": strings.Repeat("x", 4095), "4096": strings.Repeat("x", 4096),
		"1 MiB": strings.Repeat("0123456789abcdef", 1<<16), "5 MB": strings.Repeat("纵横", 5_000_000/6), "escapes": strings.Repeat("\x01", 100_000),
	}
	for name, text := range cases {
		file := filepath.Join(c.dir, "in")
		writeFile(t, file, text)
		c.ok("put", "--file", file, "--id", name)
		if code, _, errOut := c.run(text, "put", "-", "--id", name+" by stdin"); code != cli.CodeOK {
			t.Errorf("%s by stdin: exit code %d: %s", name, code, errOut)
		}
	}
	for name, text := range cases {
		for _, id := range []string{name, name + " by stdin"} {
			if got := c.ok("get", id, "--content"); got != text {
				t.Errorf("%s: %d bytes came back as %d", id, len(text), len(got))
			}
		}
	}
}

// TestLimit: at the limit and one past it.
func TestLimit(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	const limit = 20_000
	c.ok("config", "set", "max_memory_bytes", fmt.Sprint(limit))
	c.ok("put", "x", "--id", "m")
	room := limit - len(c.ok("get", "m")) + 1
	c.ok("put", strings.Repeat("x", room), "--id", "m")
	info, err := os.Stat(filepath.Join(c.store(), "memories", "m.json"))
	if err != nil || info.Size() != limit {
		t.Fatalf("the file has %v bytes, want %d: %v", info.Size(), limit, err)
	}
	for _, over := range []int{1, 100, limit, 10 * limit} {
		code, _, errOut := c.run("", "put", strings.Repeat("y", room+over), "--id", "m")
		if code != cli.CodeRefused || !strings.Contains(errOut, fmt.Sprint(limit)) {
			t.Errorf("%d past the limit: exit code %d: %s", over, code, errOut)
		}
	}
	if got := c.ok("get", "m", "--content"); got != strings.Repeat("x", room) {
		t.Errorf("the refused one was stored: %.20q", got)
	}
	c.ok("config", "set", "max_embedding_dims", "3")
	c.ok("put", "x", "--id", "v", "--embedding", "[1,2,3]")
	if code, _, errOut := c.run("", "put", "x", "--id", "w", "--embedding", "[1,2,3,4]"); code != cli.CodeRefused || !strings.Contains(errOut, "3 dimensions") {
		t.Errorf("4 dimensions: exit code %d: %s", code, errOut)
	}
}

// TestRefusedValues: rows 44 and 45 of the failure list, and their like:
// refused, and nothing is written.
func TestRefusedValues(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	c := newCLI(t)
	c.ok("put", "x", "--id", "before")
	index, err := os.ReadFile(filepath.Join(c.store(), "memory_index.json"))
	if err != nil {
		t.Fatal(err)
	}
	deep := func(n int) string {
		return `{"id":"x","content":"x","metadata":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + "}"
	}
	for name, input := range map[string]string{
		"invalid UTF-8":         "{\"id\":\"x\",\"content\":\"\xc3\x28\"}",
		"invalid UTF-8 in name": "{\"id\":\"x\",\"\xff\":1}",
		"NaN":                   `{"id":"x","quickrecal_score":NaN}`,
		"Infinity":              `{"id":"x","metadata":{"a":Infinity}}`,
		"-Infinity":             `{"id":"x","embedding":[1,-Infinity]}`,
		"1e999":                 `{"id":"x","quickrecal_score":1e999}`,
		"duplicate name":        `{"id":"x","content":"a","content":"b"}`,
		"duplicate below":       `{"id":"x","metadata":{"a":1,"a":2}}`,
		"duplicate by escape":   `{"id":"x","metadata":{"a":1,"\u0061":2}}`,
		"depth 101":             deep(100),
		"depth 10,000":          deep(10_000),
		"depth 1,000,000":       deep(1_000_000),
		"lone surrogate":        `{"id":"x","content":"\udc00"}`,
		"content is a list":     `{"id":"x","content":["x"]}`,
		"embedding of words":    `{"id":"x","embedding":["a"]}`,
		"metadata is a list":    `{"id":"x","metadata":[]}`,
		"session is a number":   `{"id":"x","metadata":{"session_id":7}}`,
		"not a time":            `{"id":"x","timestamp":"yesterday"}`,
		"no object":             `"x"`,
		"null":                  `null`,
		"cut":                   `{"id":"x","content":"`,
		"good, then bad":        `[{"id":"good","content":"x"},{"id":"x","content":NaN}]`,
		"good, then no session": `[{"id":"good","content":"x"},{"id":"x","metadata":{"session_id":7}}]`,
		"nothing":               ``,
		"an empty list":         `[]`,
	} {
		code, out, errOut := c.run(input, "put", "--json-input", "-")
		if code != cli.CodeRefused {
			t.Errorf("%s: exit code %d, want %d: %.300s", name, code, cli.CodeRefused, out+errOut)
		}
		if out != "" || len(errOut) > 2000 {
			t.Errorf("%s: stdout %.100q, %d bytes of stderr", name, out, len(errOut))
		}
		code, out, _ = c.run(input, "put", "--json-input", "-", "--json")
		var d struct{ Error *cli.Failure }
		if err := json.Unmarshal([]byte(out), &d); err != nil || d.Error == nil || d.Error.Message == "" || code != cli.CodeRefused {
			t.Errorf("%s: no JSON document with the error: %.300s", name, out)
		}
	}
	for _, args := range [][]string{{"put", "\xff"}, {"put", "x", "--session", "\xff"}, {"put", "x", "--meta", "a:=NaN"}, {"put", "x", "--meta", "\xff=1"}} {
		if code, _, errOut := c.run("", args...); code != cli.CodeRefused {
			t.Errorf("%q: exit code %d: %s", args, code, errOut)
		}
	}
	if ids := c.ids(); len(ids) != 1 {
		t.Errorf("%d memories: %q", len(ids), ids)
	}
	after, err := os.ReadFile(filepath.Join(c.store(), "memory_index.json"))
	if err != nil || string(after) != string(index) {
		t.Errorf("the index was written anew (%v)", err)
	}
	if files := tree(t, filepath.Join(c.store(), "memories")); len(files) != 2 {
		t.Errorf("files: %q", files)
	}
}
