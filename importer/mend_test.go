package importer

import (
	"bytes"
	"encoding/json"
	"io"
	"path"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
)

// TestMend: text that Python's json module writes or reads (row 44).
func TestMend(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"id":"a","content":"NaN","quickrecal_score":NaN,"x":[-Infinity,-1,Infinity]}`: `{"id":"a","content":"NaN","x":[null,-1,null]}`,
		`{"id":"a","content":"c\\\"NaN","embedding":[0.1,NaN],"metadata":{"e":NaN}}`:    `{"id":"a","content":"c\\\"NaN","embedding":null,"metadata":{"e":null}}`,
		`{"id":"a","content":"1","content":"2"}`:                                        `{"id":"a","content":"2"}`,
		`{"id":"a","content":"\ud83d"}`:                                                 `{"id":"a","content":"` + "\ufffd" + `"}`,
		"{\"id\":\"a\",\"content\":\"\xff\"}":                                           `{"id":"a","content":"` + "\ufffd" + `"}`,
		"\xef\xbb\xbf" + `{"id":"a","content":"c"}`:                                     `{"id":"a","content":"c"}`,
		`{"id":"a","content":"c","quickrecal_updated":null,"embedding":null,"n":NaN}`:   `{"id":"a","content":"c","quickrecal_updated":null,"embedding":null,"n":null}`,
		`{"id":"a","content":"c","metadata":{"k":1,"k":2}}`:                             ``,
		`{"id":"a","content":"c","x":NaNa}`:                                             ``,
		`{"id":"a","content":"c","x":+NaN}`:                                             ``,
		`{'id':'a'}`:                                                                    ``,
	} {
		doc, mends, err := parse([]byte(in))
		switch {
		case want == "" && err == nil:
			t.Errorf("%s became %s", in, doc.text)
		case want != "" && err != nil:
			t.Errorf("%s: %v", in, err)
		case want != "" && (string(doc.text) != want || len(mends) == 0):
			t.Errorf("%s became %s (%q), want %s", in, doc.text, mends, want)
		}
	}
}

func TestWithID(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`:                             `{"id":"i"}`,
		" {\n \"a\":1}\n":                "{\"id\":\"i\",\n \"a\":1}\n",
		`{"a":1,"id":null,"b":2.0}`:      `{"id":"i","a":1,"b":2.0}`,
		`{"id":"","a":9007199254740993}`: `{"id":"i","a":9007199254740993}`,
	} {
		doc, err := look([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(doc.withID("i")); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{mem("a"), `{"id":1,"content":NaN}`, `{"a":"\ud800","a":-Infinity}`, "{}", `{"id":"","text":"t"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, _, err := parse(text)
		if err != nil {
			return
		}
		for _, id := range []string{"x", doc.id} {
			out := jsontext.Value(doc.withID(id))
			if id == "" {
				continue
			}
			if !out.IsValid() {
				t.Fatalf("%q became %q", text, out)
			}
			if again, err := look(out); err != nil || again.id != id || !again.idText {
				t.Fatalf("%q became %q, with id %q, %v", text, out, again.id, err)
			}
		}
	})
}

// FuzzFiniteReader: valid JSON passes unchanged, and it does not matter in which pieces the bytes
// arrive.
func FuzzFiniteReader(f *testing.F) {
	f.Add([]byte(`{"a":NaN,"b":"NaN\"","c":[-Infinity,-1]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, err := io.ReadAll(&finiteReader{src: bytes.NewReader(text)})
		if err != nil {
			t.Fatal(err)
		}
		single, err := io.ReadAll(&finiteReader{src: iotest.DataErrReader(iotest.OneByteReader(bytes.NewReader(text)))})
		if err != nil || !bytes.Equal(whole, single) {
			t.Fatalf("%q became %q, and byte by byte %q, %v", text, whole, single, err)
		}
		if json.Valid(text) && !bytes.Equal(whole, text) {
			t.Fatalf("%q became %q", text, whole)
		}
	})
}

// FuzzSources: whatever is in the files, every item is valid and no run fails.
func FuzzSources(f *testing.F) {
	f.Add([]byte(`{"memories":{"a":{"path":"a.json"},"b":"x/b.json"},"assemblies":{}}`), "a.json")
	f.Add([]byte(`{"session_id":"s","memories":{"c":{"k":{"value":1,"timestamp":"2025-01-01T00:00:00","metadata":{"key":1}}}}}`), "b.json")
	f.Add([]byte(`{"assembly_id":"asm:1","id":5}`+"\n"+mem("a")), "corrupted_backups/a_20250101_000000.json")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		files := []string{indexName, string(text), "id_to_index.json", string(text), "m.jsonl", string(text), "a.bak", string(text), "a.json", mem("a"), "s.json", string(text)}
		base := path.Clean("/" + name)[1:]
		if base != "" && len(base) < 100 && !strings.ContainsAny(base, "\x00\\:*?\"<>|") && strings.HasSuffix(base, ".json") && strings.Count(base, "/") < 4 {
			files = append(files, "x"+base, string(text))
		}
		dir := tree(t, files...)
		for _, format := range []Format{Synthians, Vizor, JSONL} {
			drain(t, dir, format, Options{SetAside: true})
		}
	})
}
