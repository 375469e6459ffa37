package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/vector"
)

// legacy returns the files of a store with everything that those systems stored: twelve memories (m00 …
// m11), assemblies in both forms, mappings, merge log, stats. Real files with assemblies are not
// available; the forms are those in the documentation of these systems.
func legacy() map[string]string {
	files := map[string]string{}
	index := map[string]any{}
	md5s, ordinals := map[string]int64{}, map[string]int64{}
	for i := range 12 {
		id := fmt.Sprintf("m%02d", i)
		files["memories/"+id+".json"] = fmt.Sprintf(`{"id":%q,"content":"about %s","embedding":[%d.0,1.0],"quickrecal_score":0.5,"migrated_to_hierarchical":true}`, id, id, i)
		index[id] = map[string]any{"path": "memories/" + id + ".json", "timestamp": 1741289256.5, "quickrecal": 0.5, "type": "memory"}
		if i < 6 {
			md5s[id] = 1<<62 + int64(i)*3 + 1
		}
		ordinals[id] = int64(i)
	}
	md5s["ghost"] = 1 << 61
	md5s["asm:asm:form1"] = 1<<60 + 1
	// Form 1.
	files["assemblies/asm-form1.json"] = `{
  "assembly_id": "asm:form1", "name": "travel", "description": "d", "creation_time": "2025-03-06T19:27:36.532083",
  "last_access_time": "2025-03-06T19:27:36.532083", "access_count": 4, "memory_ids": ["m00", "m01", "gone"],
  "composite_embedding": [0.6, 0.8], "hyperbolic_embedding": [0.3, 0.4], "emotion_profile": {"joy": 0.50},
  "keywords": ["rome"], "activation_level": 0.25}`
	// Form 1.8: copies of whole memories, one of which is nowhere else.
	files["assemblies/asm-form18.json"] = `{
  "id": "asm:form18", "assembly_id": "asm:form18", "name": "work",
  "memories": [{"id":"m02","content":"stale"}, {"id":"m03","content":"stale","embedding":[9.0,9.0]}, {"id":"lost","content":"only here"}],
  "last_activation": "2025-03-06T19:27:36.532083", "last_activated": 1741289256.532083, "activation_count": 7,
  "assembly_schema_version": "1.8", "vector_index_updated_at": "2025-03-06T19:27:36+00:00", "tags": ["t"], "topics": ["p"],
  "is_active": false, "merged_from": ["asm:older"], "synchronization": {"n": 1.0}}`
	// Only an id, beside the memories; only the index shows that it is an assembly.
	files["asm_c0ffee.json"] = `{"id":"asm_c0ffee","name":"by the index","memories":["m04"]}`
	index["asm_c0ffee"] = map[string]any{"path": "asm_c0ffee.json", "type": "assembly", "name": "by the index"}
	// The source of a merge that was never cleaned up.
	files["assemblies/asm-src.json"] = `{"assembly_id":"asm:src","memory_ids":["m05"],"activation_count":2}`
	files["assemblies/broken.json"] = `{"assembly_id":"asm:bro`
	files["assemblies/notes.txt"] = "hello"
	index["asm:nofile"] = map[string]any{"path": "assemblies/asm-nofile.json", "type": "assembly"}
	files["logs/merge_log.jsonl"] = strings.Join([]string{
		`{"event_type":"merge_creation","merge_event_id":"e1","timestamp":"2025-04-01T15:32:45Z","source_assembly_ids":["asm:src","asm:a"],"target_assembly_id":"asm:form18","similarity_at_merge":0.92,"merge_threshold":0.85}`,
		`{"event_type":"cleanup_status_update","update_timestamp":"2025-04-01T15:35:10Z","target_merge_event_id":"e1","new_status":"failed","error":"crash"}`,
		`{"event_type":"merge","merge_event_id":"e0","source_assembly_ids":["asm:b","asm:a","asm:form18"],"target_assembly_id":"asm:a","cleanup_status":"completed"}`,
		`not json`,
		`{"event_type":"merge_creation","merge_event_id":"e2","source_assembly_ids":["asm:x"],"target_assembly_id":"asm:vanished"}`,
	}, "\n")
	files["stats/assembly_activation_stats.json"] = `{"asm:form1":12,"asm:form18":3,"asm:src":2,"asm:nobody":5}`
	files["memory_index.json"] = text(index)
	files["faiss_index.bin.mapping.json"] = text(md5s)
	files["id_to_index_mapping.json"] = text(ordinals)
	files["faiss_index.bin"] = faissFile("IxMp", vector.IP, 2, []int64{md5s["m00"], md5s["asm:asm:form1"], 1 << 59}, []float32{0, 1, 0.6, 0.8, 1, 0})
	return files
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return string(b)
}

func legacyTree(t *testing.T, change func(files map[string]string)) string {
	files := legacy()
	if change != nil {
		change(files)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, name, files[name])
	}
	return tree(t, list...)
}

func (g got) assembly(t *testing.T, id string) (*assembly.Assembly, Item) {
	t.Helper()
	for _, it := range g.assemblies {
		if it.ID == id {
			a, err := assembly.Decode(it.JSON, assembly.DecodeOptions{ID: id})
			if err != nil {
				t.Fatalf("%s: %v\n%s", id, err, it.JSON)
			}
			return a, it
		}
	}
	t.Fatalf("no assembly %s", id)
	return nil, Item{}
}

func TestLegacyAssemblies(t *testing.T) {
	t.Parallel()
	g := drain(t, legacyTree(t, nil), "", Options{})
	if len(g.items) != 12 || len(g.assemblies) != 4 {
		t.Errorf("%d memories, %d assemblies", len(g.items), len(g.assemblies))
	}
	g.expect(t,
		"missing member assemblies/asm-form1.json asm:form1 taken", "missing member assemblies/asm-form18.json asm:form18 taken",
		"set aside assemblies/asm-form18.json: memories[2] lost",
		"corrupt assemblies/broken.json", "not a memory assemblies/notes.txt", "missing memory_index.json asm:nofile",
		"index logs/merge_log.jsonl:4", "ghost logs/merge_log.jsonl asm:a", "ghost logs/merge_log.jsonl asm:vanished",
		"merge assemblies/asm-src.json asm:src taken", "ghost stats/assembly_activation_stats.json asm:nobody",
		"ghost faiss_index.bin.mapping.json ghost", "ghost faiss_index.bin",
	)
	one, it := g.assembly(t, "asm:form1")
	if !slices.Equal(one.MemoryIDs, []string{"m00", "m01", "gone"}) || one.ActivationCount != 12 || one.MergedFrom != nil ||
		one.AccessCount != 4 || it.VectorID != 1<<60+1 || !strings.Contains(it.Note, "stats/") {
		t.Errorf("%+v %+v", one, it)
	}
	if !strings.Contains(string(it.JSON), `"joy": 0.50`) {
		t.Errorf("%s", it.JSON)
	}
	two, it := g.assembly(t, "asm:form18")
	// asm:a was merged from asm:b, and the cycle back to asm:form18 is cut.
	if !slices.Equal(two.MemoryIDs, []string{"m02", "m03", "lost"}) || two.ActivationCount != 7 || !two.Inactive ||
		!slices.Equal(two.MergedFrom, []string{"asm:older", "asm:src", "asm:b", "asm:a"}) || it.VectorID != 0 {
		t.Errorf("%+v %+v", two, it)
	}
	if three, it := g.assembly(t, "asm_c0ffee"); !slices.Equal(three.MemoryIDs, []string{"m04"}) || it.Note != "" {
		t.Errorf("%+v %+v", three, it)
	}
	if four, it := g.assembly(t, "asm:src"); four.ActivationCount != 2 || string(it.JSON) != legacy()["assemblies/asm-src.json"] {
		t.Errorf("%+v %+v", four, it)
	}
	for _, c := range []struct {
		id   string
		want int64
	}{{"m00", 1<<62 + 1}, {"m05", 1<<62 + 16}, {"m06", 6}, {"m11", 11}} {
		if got := g.item(c.id).VectorID; got != c.want {
			t.Errorf("%s has the number %d, not %d", c.id, got, c.want)
		}
	}
}

// TestReport checks every member, and every file that is neither item nor problem.
func TestReport(t *testing.T) {
	t.Parallel()
	g := drain(t, legacyTree(t, nil), "", Options{})
	have := map[string]Member{}
	for _, m := range g.report.Members {
		have[m.Of+" "+m.Name] = m
	}
	for _, want := range []Member{
		{"memory", "content", 12, "content"}, {"memory", "migrated_to_hierarchical", 12, ""},
		{"assembly", "assembly_id", 3, "assembly_id"}, {"assembly", "id", 2, "assembly_id"}, {"assembly", "memories", 2, "memory_ids"},
		{"assembly", "last_activated", 1, "last_activation"}, {"assembly", "synchronization", 1, ""},
	} {
		if got := have[want.Of+" "+want.Name]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for _, name := range []string{"memory_index.json", "faiss_index.bin", "faiss_index.bin.mapping.json", "id_to_index_mapping.json", "logs/merge_log.jsonl", "stats/assembly_activation_stats.json"} {
		if !slices.ContainsFunc(g.report.Files, func(f File) bool { return f.Path == name && f.What != "" }) {
			t.Errorf("nothing is said of %s: %v", name, g.report.Files)
		}
	}
	// Nothing is dropped silently.
	told := map[string]bool{}
	for _, list := range [][]Item{g.items, g.assemblies} {
		for _, it := range list {
			told[it.Path] = true
		}
	}
	for _, p := range g.problems {
		told[p.Path] = true
	}
	for _, f := range g.report.Files {
		told[f.Path] = true
	}
	for name := range legacy() {
		if !told[name] {
			t.Errorf("%s came to nothing without a word", name)
		}
	}
}

// FAILURES 43: a copy inside an assembly is used only if the memory is lost.
func TestCopiesInsideAssemblies(t *testing.T) {
	t.Parallel()
	g := drain(t, legacyTree(t, nil), "", Options{SetAside: true})
	if it := g.item("lost"); !strings.Contains(string(it.JSON), "only here") || it.Path != "assemblies/asm-form18.json: memories[2]" {
		t.Errorf("%+v", it)
	}
	if it := g.item("m02"); strings.Contains(string(it.JSON), "stale") {
		t.Errorf("a stale copy was taken: %s", it.JSON)
	}
	g = drain(t, legacyTree(t, func(files map[string]string) {
		files["corrupted_backups/lost_20250101_000000.json"] = `{"id":"lost","content":"better"}`
	}), "", Options{SetAside: true})
	if it := g.item("lost"); !strings.Contains(string(it.JSON), "better") {
		t.Errorf("%+v", it)
	}
}

// FAILURES 34: two vectors with one number.
func TestContestedNumbers(t *testing.T) {
	t.Parallel()
	g := drain(t, tree(t, "a.json", mem("a"), "b.json", mem("b"), "c.json", mem("c"), "d.json", mem("d"), "id_to_index.json", `{"a":5,"b":5,"c":6,"d":-1}`,
		"faiss_index.bin.mapping.json", `{"c":9223372036854775806,"d":1e3}`), "", Options{})
	g.expect(t, "vector number id_to_index.json b taken", "vector number faiss_index.bin.mapping.json d taken")
	for id, want := range map[string]int64{"a": 0, "b": 0, "c": 9223372036854775806, "d": 0} {
		if got := g.item(id).VectorID; got != want {
			t.Errorf("%s has the number %d, not %d", id, got, want)
		}
	}
}

func TestAssembliesInLines(t *testing.T) {
	t.Parallel()
	lines := strings.Join([]string{`{"assembly_id":"x","memory_ids":["a","b","none"]}`, mem("a"), mem("b"), `{"memory_ids":["a"],"x":1}`,
		`{"id":"m","content":"c","assembly_id":"x","memory_ids":[]}`, `{"assembly_id":"x","memory_ids":["a","b","none"]}`}, "\n")
	g := drain(t, tree(t, "m.jsonl", lines), "", Options{})
	g.expectIDs(t, "a", "b", "m")
	g.expect(t, "missing member m.jsonl:1 x taken", "duplicate m.jsonl:6 x")
	if len(g.assemblies) != 2 || !strings.HasPrefix(g.assemblies[1].ID, "jsonl-") {
		t.Errorf("%+v", g.assemblies)
	}
}

// An invalid file or line never affects the others.
func TestAssembliesThatAreNotRight(t *testing.T) {
	t.Parallel()
	g := drain(t, tree(t, "a.json", mem("a"),
		"assemblies/nan.json", `{"assembly_id":"nan","memory_ids":["a"],"activation_level":NaN,"composite_embedding":[NaN,1.0]}`,
		"assemblies/number.json", `{"assembly_id":7,"id":8,"memory_ids":["a"]}`,
		"assemblies/bare.json", `{"name":"no id","memory_ids":["a"]}`,
		"assemblies/odd.json", `{"assembly_id":"odd","memory_ids":"a"}`,
		"assemblies/twice.json", `{"assembly_id":"odd","memory_ids":["a"]}`,
		"stats/assembly_activation_stats.json", `{"last_updated":"x","activation_counts":{"odd":4,"bare":3}}`,
		"logs/merge_log_1.jsonl", `{"event_type":"merge_creation","merge_event_id":"e","source_assembly_ids":["bare","bare"],"target_assembly_id":"bare"}`,
	), Synthians, Options{})
	g.expect(t, "mended assemblies/nan.json nan taken", "duplicate assemblies/twice.json odd")
	var ids []string
	for _, it := range g.assemblies {
		ids = append(ids, it.ID)
	}
	if !slices.Equal(ids, []string{"bare", "nan", "8", "odd"}) {
		t.Errorf("%q", ids)
	}
	if a, _ := g.assembly(t, "bare"); a.ActivationCount != 3 || a.MergedFrom != nil {
		t.Errorf("%+v", a)
	}
	if a, _ := g.assembly(t, "nan"); a.CompositeEmbedding != nil || len(a.MemoryIDs) != 1 {
		t.Errorf("%+v", a)
	}
	g.assembly(t, "8")
}
