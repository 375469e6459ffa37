package importer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

func TestLines(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	big := strings.Repeat("x", 17<<20)
	text := strings.Join([]string{
		"\xef\xbb\xbf" + mem("a"),
		``,
		`{"id":"torn","content":"`,
		mem("b") + "\r",
		`{"content":"no id","n":9007199254740993}`,
		`{"content":"no id","n":9007199254740992}`,
		`{ "n": 9007199254740993, "content": "no id" }`,
		mem("a"),
		`{"id":"a","content":"other"}`,
		`{"type":"weather","name":"x"}`,
		`{"assembly_id":"asm"}`,
		`{"id":"big","content":"` + big + `"}`,
		`{"id":"nan","content":"c","quickrecal_score":NaN}`,
		`[]`,
		mem("last"),
	}, "\n")
	dir := tree(t, "m.jsonl", text, "other.txt", "")
	one, two := contentID([]byte(`{"content":"no id","n":9007199254740993}`)), contentID([]byte(`{"content":"no id","n":9007199254740992}`))
	if one == two {
		t.Error("two large integers gave one id")
	}
	g := drain(t, dir, "", Options{})
	g.expectIDs(t, "a", "b", one, two, "big", "nan", "last")
	want := []string{"corrupt m.jsonl:3", "duplicate m.jsonl:7 " + one, "duplicate m.jsonl:8 a", "duplicate m.jsonl:9 a",
		"not a memory m.jsonl:10", "mended m.jsonl:13 nan taken", "corrupt m.jsonl:14"}
	g.expect(t, append(want, "not a memory other.txt")...)
	if it := g.item("big"); len(it.JSON) < 17<<20 {
		t.Errorf("a line of 17 MiB became %d bytes", len(it.JSON))
	}

	g = drain(t, filepath.Join(dir, "m.jsonl"), "", Options{MaxBytes: 1 << 20})
	g.expectIDs(t, "a", "b", one, two, "nan", "last")
	g.expect(t, append(want, "too large m.jsonl:12")...)
}

// TestLinesTooLongAtTheEnd: the run must end.
func TestLinesTooLongAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"", "\n"} {
		src := OpenLines(strings.NewReader(mem("a")+"\n"+strings.Repeat("x", 600<<10)+end), "-", Options{MaxBytes: 100})
		g := drainSource(t, src)
		g.expectIDs(t, "a")
		g.expect(t, "too large -:2")
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestContentID: ids are stable over versions, so a second run adds only what is new.
func TestContentID(t *testing.T) {
	t.Parallel()
	if got := contentID([]byte(`{"content":"x","a":{"c":1.0,"b":"é"}}`)); got != contentID([]byte(` {"a" : {"b":"\u00e9","c":1.0}, "content":"x"}`)) {
		t.Errorf("order, spaces or escapes changed it: %s", got)
	} else if got != "jsonl-524e24854d5d6349f4fc018d1255f65c" {
		t.Errorf("%s", got)
	}
}
