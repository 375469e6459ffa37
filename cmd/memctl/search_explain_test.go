package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSearchExplain(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	long := strings.Repeat("something else entirely, ", 40)
	c.ok("put", long+"the ferry to Bellagio at nine, "+long, "--id", "a", "--session", "trip")
	c.ok("put", "it was late", "--id", "b", "--session", "trip")
	out := c.ok("search", "ferries", "late", "--explain", "--fragment", "60")
	for _, want := range []string{"… else entirely, the ferry to Bellagio at nine, …\tferri ", " (content) + late ", "(neighbours 100%) + session ", "\tit was late\tferri "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	var found struct {
		Hits []struct {
			ID          string
			Score       float64
			Explanation explanation
			Fragment    fragment
		}
	}
	if err := json.Unmarshal([]byte(c.ok("search", "ferries", "--explain", "--fragment", "60", "--json")), &found); err != nil || len(found.Hits) != 2 {
		t.Fatal(found, err)
	}
	h := found.Hits[0]
	if e := h.Explanation; h.ID != "a" || e.Own+e.Session != h.Score || len(e.Words) != 1 || e.Words[0].Word != "ferri" || e.Words[0].Fields[0] != "content" {
		t.Errorf("%+v", h)
	}
	if m := h.Fragment.Marks; len(m) != 1 || h.Fragment.Text[m[0][0]:m[0][1]] != "ferry" {
		t.Errorf("%+v", h.Fragment)
	}
	c.ok("put", "the ferries of old", "--id", "old", "--timestamp", "2020-01-01")
	if out := c.ok("search", "ferries", "-o", "id"); !strings.HasPrefix(out, "old\n") {
		t.Errorf("the shortest is not the best: %s", out)
	}
	if out := c.ok("search", "ferries", "--recency", "10", "--half-life", "7d", "--explain"); !strings.Contains(strings.SplitN(out, "\n", 2)[0], " + recency ") || strings.HasPrefix(strings.SplitN(out, "\t", 3)[1], "old") {
		t.Errorf("the newest is not the best: %s", out)
	}
	for _, wrong := range [][]string{{"--half-life", "7d"}, {"--recency", "-1"}, {"--importance", "NaN"}, {"--recency", "1", "--half-life", "0"}, {"--recency", "1", "--half-life", "soon"}} {
		if code, _, errOut := c.run("", append([]string{"search", "x"}, wrong...)...); code != 64 || !strings.Contains(errOut, wrong[len(wrong)-2]) {
			t.Errorf("%v: exit code %d: %s", wrong, code, errOut)
		}
	}
	for _, n := range []string{"0", "-1", "70000"} {
		if code, _, errOut := c.run("", "search", "x", "--fragment", n); code != 64 || !strings.Contains(errOut, "from 1 to 65536") {
			t.Errorf("--fragment %s: exit code %d: %s", n, code, errOut)
		}
	}
}
