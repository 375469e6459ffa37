package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

const (
	idOne   = "0190f3a5-0000-7000-8000-00000000aa01"
	idTwo   = "0190f3a5-0000-7000-8000-00000000bb01"
	idThree = "0190f3a5-0000-7000-8000-0000001c0ffe"
)

// endingStore has ids that share endings, and one that is an ending of another.
func endingStore(t *testing.T) *inProcess {
	t.Helper()
	c := newCLI(t)
	for _, id := range []string{idOne, idTwo, idThree, "old-note", "project-atlas/the-first-meeting"} {
		c.ok("put", "text of "+id, "--id", id, "--embedding", "[1,0]")
	}
	return c
}

// A command takes the ending of an id where it takes the id of a memory that exists.
func TestEndings(t *testing.T) {
	t.Parallel()
	c := endingStore(t)
	c.ok("put", "changed", "--id", idThree, "--embedding", "[1,1]")
	var h struct {
		ID       string
		Versions []struct{ Version json.Number }
	}
	if err := json.Unmarshal([]byte(c.ok("history", "c0ffe", "--json")), &h); err != nil || h.ID != idThree || len(h.Versions) != 2 {
		t.Fatal(h, err)
	}
	first := h.Versions[0].Version.String()
	for _, g := range []struct {
		want string
		args []string
	}{
		{"changed", []string{"get", "c0ffe", "--content"}},
		{"changed", []string{"get", "…c0ffe", "--content"}},
		{"text of " + idThree, []string{"get", "c0ffe@" + first, "--content"}},
		{idOne + "\n", []string{"get", "aa01", "-o", "id"}},
		{`-  "content": "text of ` + idThree, []string{"diff", "c0ffe@" + first, "c0ffe"}},
		{`-  "content": "text of ` + idThree, []string{"diff", "c0ffe@" + first}},
		{"old-note", []string{"search", "--like", "c0ffe", "--min-score", "-1"}},
		{idThree, []string{"put", "more", "--append", "c0ffe"}},
		{"changed\nmore", []string{"get", idThree, "--content"}},
		{"group has 2 members", []string{"assembly", "add", "group", "aa01", "c0ffe"}},
		{"group\n", []string{"assembly", "list", "--containing", "aa01", "-o", "id"}},
		{"group has 1 member\n", []string{"assembly", "remove", "group", "aa01"}},
		{"deleted " + idThree, []string{"rm", "c0ffe"}},
	} {
		if g.args[0] == "assembly" && g.args[1] == "add" {
			c.ok("assembly", "put", "--id", "group", "--name", "g")
		}
		if out := c.ok(g.args...); !strings.Contains(out, g.want) {
			t.Errorf("memctl %q: %q, want %q", g.args, out, g.want)
		}
	}
	members := c.ok("assembly", "put", "--id", "pair", "aa01", "bb01") + c.ok("assembly", "show", "pair", "--members")
	if members != "pair\n"+idOne+"\n"+idTwo+"\n" {
		t.Errorf("%q", members)
	}
}

// What is no unique ending of an id that tables shorten names nothing, and an exact id goes first.
func TestEndingsRefused(t *testing.T) {
	t.Parallel()
	c := endingStore(t)
	before := strings.Join(c.ids(), " ")
	for _, g := range []struct {
		code int
		says string
		args []string
	}{
		{cli.CodeNotFound, "", []string{"rm", "01", "--json"}},
		{cli.CodeNotFound, "", []string{"rm", "a01"}},
		{64, "an id is empty", []string{"rm", ""}},
		{cli.CodeNotFound, "", []string{"rm", "…"}},
		{cli.CodeNotFound, "", []string{"rm", "note"}},          // of old-note, which tables show whole
		{cli.CodeNotFound, "", []string{"rm", "first-meeting"}}, // of an id that a person chose
		{cli.CodeNotFound, "", []string{"rm", "…first-meeting"}},
		{cli.CodeNotFound, "", []string{"get", "nothing-like-it"}},
		{cli.CodeNotFound, "", []string{"history", "0190f3a5-0000"}}, // a beginning
		{cli.CodeNotFound, "no such memory", []string{"assembly", "put", "--id", "g", "a01"}},
		{cli.CodeNotFound, idThree, []string{"purge", "c0ffe", "--yes"}},
	} {
		code, out, errOut := c.run("", g.args...)
		if code != g.code || !strings.Contains(out+errOut, g.says) {
			t.Errorf("memctl %q: exit code %d, want %d: %s%s", g.args, code, g.code, out, errOut)
		}
	}
	c.ok("put", "x", "--id", "0190f3a5-0000-7000-8000-00000111aa01")
	code, out, errOut := c.run("", "rm", "aa01")
	if code != cli.CodeRefused || !strings.Contains(errOut, idOne+", 0190f3a5-0000-7000-8000-00000111aa01") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	c.ok("put", "exact", "--id", "aa01") // stores what it says, and replaces nothing else
	c.ok("assembly", "put", "--id", "bb01", "--allow-missing", "c0ffe", "bb01")
	if got := c.ok("assembly", "show", "bb01", "--members"); got != "c0ffe\nbb01\n" {
		t.Errorf("with --allow-missing members are ids: %q", got)
	}
	if got := c.ok("get", "aa01", "--content"); got != "exact" {
		t.Errorf("%q", got)
	}
	c.ok("rm", "aa01", "0190f3a5-0000-7000-8000-00000111aa01")
	if after := strings.Join(c.ids(), " "); after != before {
		t.Errorf("%s, before: %s", after, before)
	}
	if code, _, _ := c.run("", "put", "x", "--append", "a01"); code != cli.CodeNotFound {
		t.Errorf("put --append of what there is not: exit code %d", code)
	}
}

// What was deleted is missing: deleting it again deletes nothing else.
func TestEndingsOfDeleted(t *testing.T) {
	t.Parallel()
	c := endingStore(t)
	c.ok("put", "a memory whose id is the ending of another", "--id", "c0ffe1")
	c.ok("put", "x", "--id", "0190f3a5-0000-7000-8000-000000c0ffe1")
	c.ok("put", "y", "--id", "task-"+idTwo)
	c.ok("rm", "c0ffe1", idTwo)
	before := strings.Join(c.ids(), " ")
	for _, args := range [][]string{
		{"rm", "c0ffe1"}, {"rm", "c0ffe1", "c0ffe1"}, {"rm", idTwo}, {"put", "more", "--append", "c0ffe1"}, {"assembly", "rm", "c0ffe1"},
	} {
		if code, out, errOut := c.run("", args...); code != cli.CodeNotFound {
			t.Errorf("memctl %q: exit code %d: %s%s", args, code, out, errOut)
		}
	}
	if after := strings.Join(c.ids(), " "); after != before {
		t.Errorf("%s, before: %s", after, before)
	}
}

// A condition on a version holds for an ending too.
func TestEndingsIfVersion(t *testing.T) {
	t.Parallel()
	c := endingStore(t)
	var h struct {
		Versions []struct{ Version json.Number }
	}
	if err := json.Unmarshal([]byte(c.ok("history", idThree, "--json")), &h); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := c.run("", "rm", "c0ffe", "--if-version", "1"); code != cli.CodeConflict || !strings.Contains(errOut, "found version") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	c.ok("rm", "c0ffe", "--if-version", h.Versions[0].Version.String())
}

// Text that is appended has no embedding of the text before.
func TestAppendDropsEmbedding(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "cat", "--id", "a", "--embedding", "[1,0]")
	if _, _, errOut := c.run("", "put", "dog", "--append", "a"); !strings.Contains(errOut, "reindex --missing") {
		t.Errorf("it does not say that the embedding is removed: %q", errOut)
	}
	if out := c.ok("get", "a", "--json"); strings.Contains(out, `"embedding":[`) {
		t.Errorf("%s", out)
	}
}
