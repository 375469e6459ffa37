package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// list --sort gives the order by what the index has and by what only documents have, in pages.
func TestListSort(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	var in strings.Builder
	for i, id := range []string{"d", "b", "a", "c", "e"} { // written in this order
		fmt.Fprintf(&in, `{"id":%q,"content":"x","quickrecal_score":%d,"timestamp":"20%02d-01-01T00:00:00Z","created_at":"20%02d-01-01T00:00:00Z"}`+"\n", id, i%3, 30-i, 10+(i*3)%5)
	}
	for line := range strings.Lines(in.String()) {
		if code, _, errOut := c.run(line, "put", "--json-input", "-"); code != cli.CodeOK {
			t.Fatal(errOut)
		}
	}
	ids := func(args ...string) string {
		return strings.ReplaceAll(c.ok(append([]string{"list", "-o", "id"}, args...)...), "\n", "")
	}
	for _, g := range []struct{ want, sort string }{
		{"abcde", "id"}, {"edcba", "-id"}, {"dbace", "updated"}, {"ecabd", "-updated"}, {"cdbea", "score"},
		{"abcde", "size"}, {"ecabd", "timestamp"}, {"dbace", "-timestamp"}, {"daebc", "created"},
	} {
		if got := ids("--sort", g.sort); got != g.want {
			t.Errorf("--sort %s: %s, want %s", g.sort, got, g.want)
		}
		var pages string
		for offset := 0; offset < 5 && g.sort != "id"; offset += 2 {
			pages += ids("--sort", g.sort, "-n", "2", "--offset", fmt.Sprint(offset))
		}
		if pages != g.want && g.sort != "id" {
			t.Errorf("--sort %s in pages: %s, want %s", g.sort, pages, g.want)
		}
	}
	for _, most := range []string{"9223372036854775807", "4611686018427387904"} {
		if got := ids("--sort", "score", "--offset", most) + ids("--sort", "score", "-n", "1", "--offset", most) + ids("--sort", "score", "-n", most, "--offset", "4"); got != "a" {
			t.Errorf("--offset %s: %q", most, got)
		}
	}
	if got := ids("--sort", "-updated", "--reverse"); got != "dbace" {
		t.Errorf("--reverse: %s", got)
	}
	if got := ids("--sort", "-updated", "--prefix", "c"); got != "c" {
		t.Errorf("--prefix: %s", got)
	}
	for _, sort := range []string{"score", "-timestamp", "-id", "size"} { // pages continue where they ended, whatever is written before
		var pages string
		for i, after := 0, ""; i < 5; i++ {
			var d struct {
				Next     string
				Memories []struct{ ID string }
			}
			args := []string{"list", "--sort", sort, "-n", "2", "--json"}
			if after != "" {
				args = append(args, "--after", after)
			}
			if err := json.Unmarshal([]byte(c.ok(args...)), &d); err != nil {
				t.Fatal(err)
			}
			for _, m := range d.Memories {
				pages += m.ID
			}
			if after = d.Next; after == "" {
				break
			}
		}
		if want := ids("--sort", sort); pages != want {
			t.Errorf("--sort %s with --after: %s, want %s", sort, pages, want)
		}
	}
	if _, _, errOut := c.run("", "list", "--sort", "score", "-n", "2", "--offset", "1"); !strings.Contains(errOut, "memctl list --limit 2 --sort score --after ") {
		t.Error(errOut)
	}
	for _, args := range [][]string{{"--sort", "length"}, {"--sort", ""}, {"--sort", "--id"}, {"--sort", "score", "--after", "a"}, {"--offset", "1"}, {"--sort", "id", "--offset", "-1"}} {
		if code, _, _ := c.run("", append([]string{"list"}, args...)...); code != 64 {
			t.Errorf("list %q: exit code %d", args, code)
		}
	}
}
