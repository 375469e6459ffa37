package importer

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestVizorRecord(t *testing.T) {
	t.Parallel()
	session := `{"memories":{"cat":{
		"plain":{"value":"as it is: \u00e9 </script>","timestamp":"2025-06-14T16:28:39.886714","category":"cat"},
		"other":{"value":{"a": [1, 9007199254740993], "b":"x"},"timestamp":"2025-06-14T16:28:39+02:00","category":"cat"},
		"meta":{"value":"v","metadata":{"type":"t","key":"theirs","session_id":"cat","metadata":{"deep":1}},"category":"elsewhere","extra":1.50},
		"inner":{"value":"v","metadata":{"metadata":{"deep":1}}},
		"odd":{"value":"v","timestamp":"yesterday","metadata":"text"},
		"bare":"only this",
		"none":{"timestamp":"2025-06-14T16:28:39"},
		"null":{"value":null,"timestamp":null,"metadata":null},
		"nan":{"value":[NaN]}
	},"broken":7},"session_id":"../../s 1"}`
	g := drain(t, tree(t, "file.json", session, "x.txt", "", "sub/y.json", "{}"), "", Options{Location: time.FixedZone("", 3600)})
	byKey := map[string]string{}
	for _, it := range g.items {
		var m struct{ Metadata struct{ Key string } }
		if err := json.Unmarshal(it.JSON, &m); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(it.JSON), ",")
		byKey[m.Metadata.Key] = rest
		if it.Note != "" {
			t.Errorf("%+v", it)
		}
	}
	head := `"metadata":{"session_id":"../../s 1","category":"cat","key":`
	for key, want := range map[string]string{
		"plain": `"content":"as it is: é </script>","timestamp":"2025-06-14T15:28:39.886714Z",` + head + `"plain"}}`,
		"other": `"content":"{\"a\":[1,9007199254740993],\"b\":\"x\"}","timestamp":"2025-06-14T14:28:39Z",` + head + `"other"}}`,
		"meta":  `"content":"v",` + head + `"meta","type":"t","extra":1.50,"metadata":{"key":"theirs","session_id":"cat","category":"elsewhere","metadata":{"deep":1}}}}`,
		"inner": `"content":"v",` + head + `"inner","metadata":{"deep":1}}}`,
		"odd":   `"content":"v",` + head + `"odd","timestamp":"yesterday","metadata":"text"}}`,
		"bare":  `"content":"only this",` + head + `"bare"}}`,
		"null":  `"content":"null",` + head + `"null"}}`,
		"nan":   `"content":"[null]",` + head + `"nan"}}`,
	} {
		if byKey[key] != want {
			t.Errorf("%s:\n%s, want\n%s", key, byKey[key], want)
		}
	}
	if len(g.items) != 8 {
		t.Errorf("%d items, want 8", len(g.items))
	}
	id := func(key string) string { return vizorID("../../s 1", "cat", key) }
	g.expect(t, "mended file.json "+id("odd")+" taken", "mended file.json "+id("bare")+" taken", "not a memory file.json "+id("none"),
		"not a memory file.json", "mended file.json taken", "not a memory x.txt", "not a memory sub")
}

// TestVizorID: ids are stable over versions, so a second import finds its memories.
func TestVizorID(t *testing.T) {
	t.Parallel()
	if got := vizorID("s", "c", "k"); got != "vizor-0661e93c8bd9298b2f83ba573a3d1c8c" {
		t.Errorf("%s", got)
	}
	if vizorID("ab", "c") == vizorID("a", "bc") {
		t.Error("parts run together")
	}
}

// TestVizorDamage: the records before the damage are imported; a session without an id gets that of the
// file (rows 20, 29).
func TestVizorDamage(t *testing.T) {
	t.Parallel()
	dir := tree(t,
		"cut.json", `{"session_id":"s","memories":{"c":{"k":{"value":"kept"},"l":{"value":"lo`,
		"empty.json", "",
		"nosession.json", `{"memories":{"c":{"k":{"value":"v"}}}}`,
		"other.json", `{"session_id":"t"}`,
		"none.json", `{"memories":{}}`,
		"tail.json", `{"memories":{"c":{"k":{"value":"v"}}}}}`,
		"twice.json", `{"memories":{"c":{"k":{"value":"1"},"k":{"value":"2"},"k":{"value":"1"}}}}`,
	)
	g := drain(t, dir, Vizor, Options{})
	g.expectIDs(t, vizorID("s", "c", "k"), vizorID("nosession", "c", "k"), vizorID("tail", "c", "k"), vizorID("twice", "c", "k"),
		vizorID("twice", "c", "k", `{"content":"2","metadata":{"session_id":"twice","category":"c","key":"k"}}`))
	g.expect(t, "corrupt cut.json", "corrupt empty.json", "not a memory other.json", "corrupt tail.json",
		"duplicate twice.json "+vizorID("twice", "c", "k")+" taken", "duplicate twice.json "+vizorID("twice", "c", "k"))
	if it := g.item(vizorID("nosession", "c", "k")); it.Note == "" {
		t.Error("a session from the file name needs a note")
	}
	g = drain(t, filepath.Join(dir, "nosession.json"), "", Options{})
	g.expectIDs(t, vizorID("nosession", "c", "k"))
}
