package text

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestContent(t *testing.T) {
	for _, c := range []struct{ doc, id, content string }{
		{`{"id":"a","content":"x y"}`, "a", "x y"},
		{"{\n  \"id\": \"a\",\n  \"content\": \"say \\\"hi\\\"\\n\\u00e9\\ud83d\\ude00\\u0041\",\n  \"embedding\": [", "a", "say \"hi\"\né😀A"},
		{`{"x":{"content":"no","a":["}",{"b":"\\"}]},"y":[[1],2],"z":-1.5e3,"t":true,"content":"yes","id":"b"}`, "b", "yes"},
		{`{"id":"a","content":""}`, "a", ""},
		{`{"id":"a","content":"\\"}`, "a", `\`},
	} {
		id, content, _, ok := Content([]byte(c.doc), nil)
		if !ok || string(id) != c.id || string(content) != c.content {
			t.Errorf("%s: %q %q %v", c.doc, id, content, ok)
		}
	}
	for _, doc := range []string{
		"", "{", "{}", "[]", `{"id":"a"}`, `{"id":"a","text":"old"}`, `{"id":"a","content":null}`, `{"id":"a","content":3}`, `{"id":"a","content":"x`,
		`{"id":"a","content":"x\`, `{"\u0069d":"a","content":"x"}`, `{"id":"\u0061","content":"x"}`, `{"id":"a","content":"\x"}`,
		`{"id":"a" "content":"x"}`, "{\"id\":\"a\",\"content\":\"\xff\"}", `{"id":"a","content":"\u12"}`, `{"id":1,"content":"x"}`, "{\"id\":\"a\xc9\",\"content\":\"x\"}",
	} {
		if id, content, _, ok := Content([]byte(doc), nil); ok {
			t.Errorf("%s: %q %q", doc, id, content)
		}
	}
}

// Where it gives an answer, that is the answer of encoding/json.
func FuzzContent(f *testing.F) {
	f.Add(`{"a":[1,{"content":"n"}],"id":"a","content":"x\ny\u00e9"}`)
	f.Fuzz(func(t *testing.T, doc string) {
		id, content, _, ok := Content([]byte(doc), nil)
		var want map[string]any
		if json.Unmarshal([]byte(doc), &want) != nil || strings.Count(doc, `"content"`) > 1 || strings.Count(doc, `"id"`) > 1 || strings.Contains(doc, `\u`) {
			return
		}
		_, plain := want["content"].(string)
		if ok && (want["id"] != string(id) || want["content"] != string(content)) || ok && !plain {
			t.Errorf("%q: %q %q", doc, id, content)
		}
	})
}

func BenchmarkContent(b *testing.B) {
	doc := []byte("{\n  \"id\": \"0198c5a1-0000-7000-8000-000000000000\",\n  \"content\": \"" + strings.Repeat("some words \\n", 60) + "\",\n  \"timestamp\": \"\"\n}\n")
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		_, _, buf, _ = Content(doc, buf)
	}
}
