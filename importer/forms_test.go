package importer

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/memstore"
)

// Files as these systems write them: mem0's get_all (OSS and platform), OpenMemory's backup, LangChain's
// messages_to_dict, dumpd and InMemoryVectorStore.dump, llama_index's docstore.json and chat stores, and
// messages in the form in which chats are stored.
var foreignFiles = []struct {
	name, text string
	format     Format
	forms      string
	contents   []string // in the order of the file
	problems   []string
}{
	{"mem0.json", `{"results": [
  {"id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8c", "memory": "Likes to travel", "hash": "h1", "metadata": {"category": "hobbies"}, "score": 0.3, "created_at": "2024-07-20T01:30:36.275141-07:00", "updated_at": null, "user_id": "alex", "run_id": "r1"},
  {"id": "m2", "memory": "", "hash": null, "metadata": null, "created_at": "2024-07-21T00:00:00+00:00", "updated_at": null, "user_id": "alex"}
 ], "relations": []}`, Mem0, "2 as mem0", []string{"Likes to travel", ""}, nil},
	{"mem0.jsonl", `{"id":"a","memory":"one"}` + "\n" + `{"id":"b","memory":"two","categories":["x"]}`, Mem0, "2 as mem0", []string{"one", "two"}, nil},
	{"platform.json", `[{"id":"a","memory":"one","user_id":"u"},` + "\n" + `{"id":"b","memory":"two","user_id":"u"}]`, Mem0, "2 as mem0", []string{"one", "two"}, nil},
	{"memories.json", `{"user":{"id":"u"},"memories":[{"id":"a","content":"kept","state":"active","category_ids":[]},{"id":"b","content":"gone","state":"deleted","category_ids":[]}],"export_meta":{"version":"1"}}`,
		JSONL, "1 as jsonl", []string{"kept"}, []string{"not a memory memories.json:1.memories[1] b"}},
	{"history.json", `[{"type": "human", "data": {"content": "hi", "additional_kwargs": {}, "response_metadata": {}, "type": "human", "name": null, "id": null, "example": false}}, {"type": "ai", "data": {"content": [{"type": "text", "text": "hello"}, {"type": "image_url", "image_url": {"url": "x"}}], "type": "ai", "id": "run-1", "tool_calls": []}}, {"type": "human", "data": {"content": "hi", "type": "human"}}]`,
		LangChain, "3 as langchain", []string{"hi", "hello", "hi"}, nil},
	{"docs.jsonl", `{"id": null, "metadata": {"source": "a.txt"}, "page_content": "a page", "type": "Document"}` + "\n" +
		`{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "document", "Document"], "kwargs": {"page_content": "by dumpd", "metadata": {"source": "b.txt"}, "type": "Document"}}` + "\n" +
		`{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": "said", "type": "human"}}`,
		LangChain, "3 as langchain", []string{"a page", "by dumpd", "said"}, nil},
	{"store.json", `{
  "u1": {"id": "u1", "vector": [0.5, 0.25], "text": "first", "metadata": {"n": 1}},
  "u2": {"id": "u2", "vector": [0.1, 0.2], "text": "second", "metadata": {}}
}`, LangChain, "2 as langchain", []string{"first", "second"}, nil},
	{"docstore.json", `{"docstore/metadata": {"n1": {"doc_hash": "x"}}, "docstore/data": {"n1": {"__data__": {"id_": "n1", "embedding": null, "metadata": {"file_name": "f"}, "relationships": {"1": {"node_id": "d"}}, "text": "a node", "mimetype": "text/plain", "start_char_idx": 0, "class_name": "TextNode"}, "__type__": "1"}, "n2": {"__data__": {"id_": "n2", "metadata": {}, "text_resource": {"embeddings": null, "text": "a document", "path": null}, "class_name": "Document"}, "__type__": "4"}, "n3": {"__data__": "{\"id_\": \"n3\", \"text\": \"as a text\", \"extra_info\": {\"k\": 1}}", "__type__": "1"}}, "docstore/ref_doc_info": {}}`,
		LlamaIndex, "3 as llama-index", []string{"a node", "a document", "as a text"}, nil},
	{"chat_store.json", `{"store": {"alice": [{"role": "user", "content": "ok", "additional_kwargs": {}}, {"role": "assistant", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "fine"}]}], "bob": [{"role": "user", "content": "ok", "additional_kwargs": {}}]}, "class_name": "SimpleChatStore"}`,
		Chat, "2 as chat, 1 as llama-index", []string{"ok", "fine", "ok"}, nil},
	{"chat.jsonl", strings.Repeat(`{"role":"user","content":"ok"}`+"\n", 3), Chat, "3 as chat", []string{"ok", "ok", "ok"}, nil},
	{"tuning.jsonl", `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}]}` + "\n" + `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}]}`,
		Chat, "4 as chat", []string{"s", "q", "s", "q"}, nil},
	{"own.json", "[\n" + `{"id":"a","content":"one"},` + "\n" + `{"id":"b","content":"two"}` + "\n]", JSONL, "2 as jsonl", []string{"one", "two"}, nil},
	{"pretty.json", "{\n \"id\": \"a\",\n \"content\": \"one\"\n}\n", JSONL, "1 as jsonl", []string{"one"}, nil},
	{"mixed.jsonl", `{"id":"a","memory":"one"}` + "\n" + `{"id":"b","content":{"x":1}}` + "\n" + `{"id":"c","content":7}` + "\n" + `{"id":"d","text":null}` + "\n" + `{"name":"x","age":3}` + "\n" + `{"id":"a","memory":"other"}` + "\n" + `{"id":"a","memory":"one"}`,
		Mem0, "3 as mem0", []string{"one"}, []string{"content is not text mixed.jsonl:2 b lost", "content is not text mixed.jsonl:3 c lost", "content is not text mixed.jsonl:4 d lost",
			"not a memory mixed.jsonl:5  lost", "duplicate mixed.jsonl:6 a lost", "duplicate mixed.jsonl:7 a"}},
	{"cut.json", `[{"id":"a","memory":"one"},{"id":"b","memo`, Mem0, "1 as mem0", []string{"one"}, []string{"corrupt cut.json "}},
}

func TestForeignForms(t *testing.T) {
	t.Parallel()
	for _, c := range foreignFiles {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, c.name, c.text)
			format, err := Detect(filepath.Join(dir, c.name))
			if err != nil || format != c.format {
				t.Fatalf("detected %q: %v, want %q", format, err, c.format)
			}
			g := drain(t, filepath.Join(dir, c.name), "", Options{})
			var contents, problems, forms []string
			for _, it := range g.items {
				m, err := memstore.Decode(it.JSON, memstore.DecodeOptions{})
				if err != nil {
					t.Fatalf("%s: %v", it.JSON, err)
				}
				contents = append(contents, m.Content)
			}
			for _, p := range g.problems {
				s := fmt.Sprintf("%s %s %s", p.Kind, p.Path, p.ID)
				if p.LeftOut {
					s += " lost"
				}
				problems = append(problems, s)
			}
			for _, f := range g.report.Forms {
				forms = append(forms, fmt.Sprintf("%d as %s", f.Count, f.Format))
			}
			if fmt.Sprintf("%q", contents) != fmt.Sprintf("%q", c.contents) || fmt.Sprintf("%q", problems) != fmt.Sprintf("%q", c.problems) {
				t.Errorf("contents %q, want %q\nproblems %q, want %q", contents, c.contents, problems, c.problems)
			}
			if got := strings.Join(forms, ", "); got != c.forms {
				t.Errorf("recognised %s, want %s", got, c.forms)
			}

			// From a stream, with the same ids: a second import adds nothing.
			src := OpenLines(strings.NewReader(c.text), c.name, Options{})
			again := drainSource(t, src)
			for i, it := range again.items {
				if i >= len(g.items) || it.ID != g.items[i].ID {
					t.Errorf("from a stream, item %d has the id %s", i, it.ID)
				}
			}
			if len(again.items) != len(g.items) {
				t.Errorf("%d items from a stream, %d from the file", len(again.items), len(g.items))
			}
		})
	}
}

// The data of a record besides its content are kept: its id, the time, the speaker, its session, its
// embedding.
func TestForeignMembers(t *testing.T) {
	t.Parallel()
	member := func(g got, n int, path ...string) string {
		t.Helper()
		var v any
		if err := json.Unmarshal(g.items[n].JSON, &v); err != nil {
			t.Fatal(err)
		}
		for _, name := range path {
			m, _ := v.(map[string]any)
			v = m[name]
		}
		return fmt.Sprint(v)
	}
	all := map[string]got{}
	for _, c := range foreignFiles {
		all[c.name] = drain(t, filepath.Join(tree(t, c.name, c.text), c.name), "", Options{})
	}
	for _, c := range []struct {
		file string
		n    int
		path []string
		want string
	}{
		{"mem0.json", 0, []string{"id"}, "892db2ae-06d9-49e5-8b3e-585ef9b85b8c"},
		{"mem0.json", 0, []string{"timestamp"}, "2024-07-20T01:30:36.275141-07:00"},
		{"mem0.json", 0, []string{"metadata", "session_id"}, "r1"},
		{"mem0.json", 0, []string{"metadata", "category"}, "hobbies"},
		{"mem0.json", 0, []string{"user_id"}, "alex"},
		{"mem0.json", 0, []string{"hash"}, "h1"},
		{"history.json", 0, []string{"metadata", "role"}, "human"},
		{"history.json", 0, []string{"metadata", "session_id"}, "history"},
		{"history.json", 1, []string{"metadata", "message_id"}, "run-1"},
		{"history.json", 1, []string{"metadata", "blocks"}, "[map[text:hello type:text] map[image_url:map[url:x] type:image_url]]"},
		{"docs.jsonl", 0, []string{"metadata", "source"}, "a.txt"},
		{"docs.jsonl", 2, []string{"metadata", "role"}, "human"},
		{"store.json", 0, []string{"embedding"}, "[0.5 0.25]"},
		{"store.json", 0, []string{"id"}, "u1"},
		{"docstore.json", 0, []string{"id"}, "n1"},
		{"docstore.json", 0, []string{"metadata", "file_name"}, "f"},
		{"docstore.json", 0, []string{"relationships", "1", "node_id"}, "d"},
		{"docstore.json", 2, []string{"metadata", "k"}, "1"},
		{"chat_store.json", 2, []string{"metadata", "session_id"}, "bob"},
		{"chat_store.json", 1, []string{"metadata", "role"}, "assistant"},
		{"tuning.jsonl", 2, []string{"metadata", "session_id"}, "tuning-2"},
	} {
		if got := member(all[c.file], c.n, c.path...); got != c.want {
			t.Errorf("%s, record %d, %q: %s, want %s", c.file, c.n, c.path, got, c.want)
		}
	}
	report := all["mem0.json"].report
	found := false
	for _, m := range report.Members {
		found = found || m.Name == "memory" && m.As == "content" && m.Count == 2
	}
	if !found {
		t.Errorf("the report does not say that memory was read as content: %+v", report.Members)
	}
}

// A folder of llama_index, and one of message histories.
func TestForeignFolders(t *testing.T) {
	t.Parallel()
	dir := tree(t, "docstore.json", foreignFiles[7].text, "index_store.json", "{}", "default__vector_store.json", `{"embedding_dict":{}}`, "graph_store.json", "{}")
	g := drain(t, dir, "", Options{})
	g.expectIDs(t, "n1", "n2", "n3")
	g.expect(t)
	if len(g.report.Files) != 3 {
		t.Errorf("%+v", g.report.Files)
	}
	dir = tree(t, "s1.json", foreignFiles[4].text, "s2.json", foreignFiles[4].text, "README.md", "x")
	g = drain(t, dir, "", Options{})
	if len(g.items) != 6 {
		t.Errorf("%d messages of two conversations of 3", len(g.items))
	}
	g.expect(t, "not a memory README.md")
}

// A content that is not text is reported as such, and not as invalid JSON.
func TestForeignEncodings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"\xff\xfe{\x00}\x00": "UTF-16", "\x1f\x8b\x08\x00\x00": "gzip", "PK\x03\x04xx": "zip", "SQLite format 3\x00": "SQLite"} {
		dir := tree(t, "x.jsonl", text)
		if _, err := Detect(filepath.Join(dir, "x.jsonl")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		g := drainSource(t, OpenLines(strings.NewReader(text), "-", Options{}))
		if len(g.problems) != 1 || !strings.Contains(g.problems[0].Reason, want) {
			t.Errorf("%q from a stream: %+v, want %s", text, g.problems, want)
		}
	}
}

// A member with the name of one of ours stays as metadata if another member is converted to that name.
func TestForeignMembersAreKept(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"id":"a","page_content":"page","content":"own","timestamp":"2024-01-02T03:04:05Z"}`: `{"id":"a","content":"page","timestamp":"2024-01-02T03:04:05Z","metadata":{"content":"own"}}`,
		`{"id":"a","vector":[1],"text":"row","content":"own","embedding":[2]}`:                `{"id":"a","content":"row","embedding":[1],"metadata":{"content":"own","embedding":[2]}}`,
		`{"id_":"a","text":"node","content":"own","id":"b","timestamp":7}`:                    `{"id":"a","content":"node","timestamp":7,"metadata":{"content":"own","id":"b"}}`,
		`{"id":"a","memory":"m","timestamp":{"at":1},"created_at":"2024-01-02T03:04:05Z"}`:    `{"id":"a","content":"m","timestamp":"2024-01-02T03:04:05Z","metadata":{"timestamp":{"at":1}},"created_at":"2024-01-02T03:04:05Z"}`,
	} {
		g := drainSource(t, OpenLines(strings.NewReader(text), "x.jsonl", Options{}))
		if len(g.items) != 1 || string(g.items[0].JSON) != want {
			t.Errorf("%s became %v %v, want %s", text, g.items, g.problems, want)
		}
	}
	g := drainSource(t, OpenLines(strings.NewReader(`{"role":"user","content":"c","timestamp":"2024-01-02T03:04:05Z","created_at":"x"}`), "x.jsonl", Options{}))
	if len(g.items) != 1 || !strings.Contains(string(g.items[0].JSON), `"created_at":"x"`) {
		t.Errorf("%s", g.items[0].JSON)
	}
}
