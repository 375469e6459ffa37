package importer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
)

// TestIndexForms: each form names a and b, and omits the file of c.
func TestIndexForms(t *testing.T) {
	t.Parallel()
	for name, index := range map[string]string{
		"A": `{"memories":{"a":{"filepath":"memories/a.json","quickrecal_score":0.5},"m:b":{"filepath":"memories/m-b.json"}},
			"assemblies":{"asm1":{"filepath":"assemblies/asm1.json"}},"metadata":{"version":"1"}}`,
		"B": `{"a":{"path":"a.json","timestamp":1743080007.9,"quickrecal":0.6,"type":"memory"},
			"m:b":{"path":"m-b.json","type":"memory"},"asm1":{"path":"asm1.json","type":"assembly","name":"x"}}`,
		"C": `{"last_updated":"2025-01-01","memories":{"a":{"path":"memories/a.json","significance":NaN},"m:b":{"path":"memories\\m:b.json"}},
			"count":0,"self_model":{"path":"self.json"},"world_model":{}}`,
		"D": `{"memories":{"a":"/srv/stored/a.json","m:b":"m:b.json"},"assemblies":{"asm1":"asm1.json"}}`,
	} {
		for _, at := range []string{"", "memories/"} {
			t.Run(name+" "+at, func(t *testing.T) {
				dir := tree(t, indexName, index, at+"a.json", mem("a"), at+"m-b.json", mem("m:b"), at+"c.json", mem("c"))
				g := drain(t, dir, "", Options{})
				g.expectIDs(t, "a", "m:b", "c")
				want := []string{"unindexed " + at + "c.json c taken"}
				if name != "C" { // which has no assemblies
					want = append(want, "missing memory_index.json asm1")
				}
				g.expect(t, want...)
			})
		}
	}
}

// TestFolderIsTheTruth: no memory is lost if the index is empty, says 0, is truncated or is not JSON at
// all (rows 11, 36).
func TestFolderIsTheTruth(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		index string
		want  []string
	}{
		"says 0":    {`{"memories":{},"count":0}`, []string{"unindexed a.json a taken", "unindexed memories/b.json b taken"}},
		"empty":     {``, []string{"index memory_index.json"}},
		"cut short": {`{"memories":{"a":{"path":"a.json"},"b":{"pa`, []string{"index memory_index.json"}},
		"an array":  {`[]`, []string{"index memory_index.json"}},
		"BOM":       {"\xef\xbb\xbf{\"memories\":{\"a\":\"a.json\",\"b\":\"b.json\"}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := drain(t, tree(t, indexName, tc.index, "a.json", mem("a"), "memories/b.json", mem("b")), "", Options{})
			g.expectIDs(t, "a", "b")
			g.expect(t, tc.want...)
		})
	}
}

func TestFilesThatAreNotRight(t *testing.T) {
	t.Parallel()
	dir := tree(t,
		indexName, `{"memories":{"a":"a.json","gone":"gone.json","torn":"torn.json","noid":"x/noid.json","evil":"../../../etc/passwd"}}`,
		"a.json", mem("a"),
		"torn.json", `{"id":"torn","content":"ha`,
		"empty.json", "",
		"zero.json", "\x00\x00\x00",
		"list.json", `[1]`,
		"two.json", mem("two")+mem("two"),
		"settings.json", `{"theme":"dark"}`,
		"x/noid.json", `{"content":"named by the index alone"}`,
		"unnamed.json", `{"content":"named by nobody"}`,
		"number.json", `{"id":12345678901234567890,"content":"n"}`,
		"notes.txt", "hello",
		"asm_1.json", `{"assembly_id":"asm:1","memories":[{"id":"a","content":"stale"}]}`,
		"assemblies/asm_2.json", `{"assembly_id":"asm_2","memory_ids":["a"]}`,
		"logs/merge_log.jsonl", `{}`, "logs/x.log", `{}`, "stats/x.json", `{}`, ".git/x.json", mem("git"),
		"id_to_index.json", `{"a":0,"gone":1,"torn":2,"asm:asm_2":3,"asm:1":4,"nobody":9223372036854775806,"odd":1.5,"metadata":{}}`,
		"faiss_index.bin", "IxMp",
	)
	g := drain(t, dir, Synthians, Options{})
	g.expectIDs(t, "a", "noid", "unnamed", "12345678901234567890")
	g.expect(t,
		"corrupt torn.json", "corrupt empty.json", "corrupt zero.json", "corrupt list.json", "corrupt two.json",
		"not a memory settings.json", "not a memory notes.txt", "index logs/merge_log.jsonl:1", "not a memory logs/x.log", "not a memory stats/x.json", "not a memory x",
		"unindexed unnamed.json unnamed taken", "unindexed number.json 12345678901234567890 taken",
		"wrong id number.json 12345678901234567890 taken",
		"missing memory_index.json gone", "missing memory_index.json evil",
		"ghost id_to_index.json nobody", "ghost id_to_index.json odd", "vector file faiss_index.bin",
	)
	if len(g.assemblies) != 2 || g.assemblies[0].ID != "asm:1" || g.assemblies[1].ID != "asm_2" || g.assemblies[0].VectorID != 4 || g.assemblies[1].VectorID != 3 {
		t.Errorf("%+v", g.assemblies)
	}
	if p := g.of(KindGhost); !strings.Contains(p[0].Reason, "9223372036854775806") {
		t.Errorf("the number of a ghost was not kept: %v", p)
	}
	if it := g.item("noid"); it.Note == "" {
		t.Error("an id from the index needs a note")
	}
}

// TestWrongNames: the id inside is authoritative; a file with a matching name has precedence over
// another one with that id.
func TestWrongNames(t *testing.T) {
	t.Parallel()
	dir := tree(t,
		"0.json", mem("z"), // read first, but z.json has precedence
		"1.json", mem("alone"),
		"2.json", `{"id":"alone","content":"other text"}`,
		"z.json", `{"id":"z","content":"the real one"}`,
		"3.json", `{"id":"z","content":"the real one"}`,
	)
	g := drain(t, dir, "", Options{})
	g.expectIDs(t, "z", "alone")
	g.expect(t, "duplicate 0.json z", "wrong id 1.json alone taken", "duplicate 2.json alone", "duplicate 3.json z")
	if it := g.item("z"); it.Path != "z.json" {
		t.Errorf("z was taken from %s", it.Path)
	}
	for _, p := range g.of(KindDuplicate) {
		if same := strings.Contains(p.Reason, "second copy"); same != (p.Path == "3.json") {
			t.Errorf("%v", p)
		}
	}
}

// TestIndexDecides: the index decides which of two files with the same id is used.
func TestIndexDecides(t *testing.T) {
	t.Parallel()
	dir := tree(t, indexName, `{"memories":{"a":"memories/a.json"}}`, "a.json", mem("a"), "memories/a.json", `{"id":"a","content":"the one"}`)
	g := drain(t, dir, "", Options{})
	g.expect(t, "duplicate a.json a")
	if it := g.item("a"); it.Path != "memories/a.json" {
		t.Errorf("taken from %s", it.Path)
	}
}

func TestBak(t *testing.T) {
	t.Parallel()
	dir := tree(t,
		"same.json", mem("same"), "same.bak", mem("same"),
		"new.json", `{"id":"new","content":"2"}`, "new.bak", `{"id":"new","content":"1"}`,
		"torn.json", `{"id":"torn","con`, "torn.json.bak", mem("torn"),
		"lost.bak", mem("lost"),
		"bad.bak", "{",
		"memory_index.bak", "{}",
	)
	g := drain(t, dir, Synthians, Options{})
	g.expectIDs(t, "same", "new", "torn", "lost")
	g.expect(t, "copy same.bak", "copy new.bak", "corrupt torn.json", "copy torn.json.bak torn taken", "copy lost.bak lost taken",
		"corrupt bad.bak", "not a memory memory_index.bak")
	if it := g.item("new"); it.Path != "new.json" {
		t.Errorf("taken from %s", it.Path)
	}
}

// TestSetAside: valid files that were set aside because of a false alarm (row 24).
func TestSetAside(t *testing.T) {
	t.Parallel()
	dir := tree(t,
		"a.json", mem("a"),
		"torn.json", "{",
		"corrupted_backups/a_20250101_000000.json", mem("a"),
		"corrupted_backups/lost_20250101_000000.json", `{"id":"lost","content":"old"}`,
		"corrupted_backups/lost_20250102_000000.json", `{"id":"lost","content":"new"}`,
		"corrupted_backups/torn_20250102_000000.json", `{"content":"found again"}`,
		"corrupted_backups/bad_20250102_000000.json", `{`,
		"backups/backup_20250103_000000/memories/a.json", mem("a"),
		"backups/backup_20250103_000000/memory_index.json", `{}`,
		"ltm/far.json", mem("far"),
	)
	problems := []string{"corrupt torn.json", "set aside backups"}
	g := drain(t, dir, "", Options{})
	g.expectIDs(t, "a")
	g.expect(t, append(problems, "set aside corrupted_backups", "set aside ltm", "set aside corrupted_backups/lost_20250102_000000.json lost",
		"set aside corrupted_backups/torn_20250102_000000.json torn", "set aside ltm/far.json far")...)

	g = drain(t, dir, "", Options{SetAside: true})
	g.expectIDs(t, "a", "lost", "torn", "far")
	g.expect(t, append(problems, "set aside corrupted_backups taken", "set aside ltm taken", "set aside corrupted_backups/lost_20250102_000000.json lost taken",
		"set aside corrupted_backups/torn_20250102_000000.json torn taken", "set aside ltm/far.json far taken")...)
	if it := g.item("lost"); !strings.Contains(string(it.JSON), "new") {
		t.Errorf("an older copy was taken: %s", it.JSON)
	}
}

// TestPassesBytesOn: text that needs no correction is not changed.
func TestPassesBytesOn(t *testing.T) {
	t.Parallel()
	text := "{\n  \"id\": \"a\",\n  \"content\": \"x\",\n \"embedding\":\"[1.0e-02  2\\n 3]\", \"n\": 9007199254740993, \"f\": 1.0}\n"
	g := drain(t, tree(t, "a.json", text), "", Options{})
	if it := g.item("a"); string(it.JSON) != text {
		t.Errorf("%s", it.JSON)
	}
}

// TestLinkLeadsOut: a link is followed only within the folder.
func TestLinkLeadsOut(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	outside := tree(t, "b.json", mem("b"))
	dir := tree(t, "a.json", mem("a"))
	if err := os.Symlink(filepath.Join(outside, "b.json"), filepath.Join(dir, "b.json")); err != nil {
		t.Fatal(err)
	}
	g := drain(t, dir, "", Options{})
	g.expectIDs(t, "a")
	g.expect(t, "unreadable b.json")
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	g := drain(t, tree(t, "a.json", mem("a"), "b.json", mem(strings.Repeat("b", 100))), "", Options{MaxBytes: 100})
	g.expectIDs(t, "a")
	g.expect(t, "too large b.json")
}

func TestDetect(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files []string
		want  Format
	}{
		"an index that is no JSON": {[]string{indexName, "{"}, Synthians},
		"a mapping alone":          {[]string{"id_to_index.json", "{}"}, Synthians},
		"memory files":             {[]string{"bad.json", "{", "x.json", mem("x")}, Synthians},
		"memory files below":       {[]string{"memories/x.json", mem("x")}, Synthians},
		"an old memory file":       {[]string{"x.json", `{"id":"x","text":"t"}`}, Synthians},
		"sessions":                 {[]string{"s.json", `{"memories":{}}`}, Vizor},
		"lines":                    {[]string{"export.jsonl", mem("x"), "package.json", `{"name":"x"}`}, JSONL},
		"nothing":                  {nil, ""},
		"something else":           {[]string{"package.json", `{"name":"x"}`}, ""},
		"a store":                  {[]string{"config.json", `{"varve":1}`, indexName, "{}", "memories/x.json", mem("x")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Detect(tree(t, tc.files...))
			if got != tc.want || (err != nil) != (tc.want == "") || err != nil && !errors.Is(err, errs.ErrInvalid) {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
	dir := tree(t, "a.jsonl", "", "lines", mem("x")+"\n"+mem("y"), "session.json", "{\n\"memories\":{}}", "x.txt", "hello")
	for name, want := range map[string]Format{"a.jsonl": JSONL, "lines": JSONL, "session.json": Vizor, "x.txt": "", "none": ""} {
		if got, err := Detect(filepath.Join(dir, name)); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := tree(t, "a.json", mem("a"))
	for _, tc := range []struct {
		path   string
		format Format
	}{{dir, "yaml"}, {filepath.Join(dir, "a.json"), Synthians}, {filepath.Join(dir, "none"), JSONL}, {filepath.Join(dir, "none"), ""}} {
		if src, err := Open(tc.path, tc.format, Options{}); err == nil {
			src.Close()
			t.Errorf("%v: opened", tc)
		}
	}
}

// TestLeavingAndCancelling: a consumer that stops is not called again, and a canceled context ends the
// run with its error.
func TestLeavingAndCancelling(t *testing.T) {
	t.Parallel()
	for format, dir := range map[Format]string{
		Synthians: tree(t, "a.json", mem("a"), "b.json", mem("b"), "id_to_index.json", `{"x":1,"y":2}`),
		Vizor:     tree(t, "s.json", `{"memories":{"c":{"k":{"value":"1"},"l":{"value":"2"}}}}`),
		JSONL:     tree(t, "s.jsonl", mem("a")+"\n"+mem("b")),
	} {
		src, err := Open(dir, format, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range src.All(t.Context()) {
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n, last := 0, error(nil)
		for _, err := range src.All(ctx) {
			cancel()
			n, last = n+1, err
		}
		if n != 2 || !errors.Is(last, context.Canceled) {
			t.Errorf("%s: %d steps, %v", format, n, last)
		}
		src.Close()
	}
}

// TestIndexNamesElsewhere: a Windows path, to a file whose name does not contain the id.
func TestIndexNamesElsewhere(t *testing.T) {
	t.Parallel()
	dir := tree(t, indexName, `{"memories":{"w":"deep\\er\\1.json"}}`, "deep/er/1.json", mem("w"))
	g := drain(t, dir, "", Options{})
	g.expectIDs(t, "w")
	g.expect(t, "not a memory deep")
}
