package assembly

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)

func decode(t testing.TB, doc string) *Assembly {
	t.Helper()
	a, err := Decode([]byte(doc), DecodeOptions{})
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return a
}

func encode(t testing.TB, a *Assembly) string {
	t.Helper()
	doc, err := a.Encode(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

const form1 = `{
  "assembly_id": "asm:0a1b2c3d4e5f",
  "name": "travel",
  "description": "where she went",
  "creation_time": "2025-03-06T19:27:36.532083",
  "last_access_time": "2025-03-06T20:27:36.532083",
  "access_count": 4,
  "memory_ids": ["mem_000000000001", "mem_000000000002"],
  "composite_embedding": [0.6, 0.8],
  "hyperbolic_embedding": [0.27, 0.36],
  "emotion_profile": {"joy": 0.50, "dominant": "joy"},
  "keywords": ["rome", "train"],
  "activation_level": 0.25
}`

const form18 = `{
  "id": "asm:0a1b2c3d4e5f",
  "assembly_id": "asm:0a1b2c3d4e5f",
  "name": "travel",
  "memories": [{"id":"mem_000000000001","content":"old copy","embedding":[1.0,0.0]},{"id":"mem_000000000002","content":"another"},{"id":"mem_000000000001"}],
  "last_activation": "2025-03-06T19:27:36.532083",
  "last_activated": 1741289256.532083,
  "activation_count": 7,
  "assembly_schema_version": "1.8",
  "vector_index_updated_at": "2025-03-06T19:27:36+00:00",
  "tags": ["a"], "topics": ["b"],
  "is_active": false,
  "merged_from": ["asm:1"],
  "synchronization_state": {"n": 1.0}
}`

func TestEveryInputVariant(t *testing.T) {
	at := time.Date(2025, 3, 6, 19, 27, 36, 532083000, time.UTC)
	for _, c := range []struct {
		doc  string
		opts DecodeOptions
		want Assembly
	}{
		{`{"assembly_id":"a"}`, DecodeOptions{ID: "a"}, Assembly{ID: "a"}},
		{`{"id":"a"}`, DecodeOptions{ID: "a"}, Assembly{ID: "a"}},
		{`{"id":"b","assembly_id":"a"}`, DecodeOptions{}, Assembly{ID: "a"}},
		{`{"name":"n"}`, DecodeOptions{IDOptional: true}, Assembly{Name: "n"}},
		{form1, DecodeOptions{}, Assembly{ID: "asm:0a1b2c3d4e5f", Name: "travel", Description: "where she went", CreationTime: at,
			LastAccessTime: at.Add(time.Hour), AccessCount: 4, MemoryIDs: []string{"mem_000000000001", "mem_000000000002"},
			CompositeEmbedding: []float32{0.6, 0.8}, HyperbolicEmbedding: []float32{0.27, 0.36}, Keywords: []string{"rome", "train"},
			EmotionProfile: map[string]any{"joy": 0.5, "dominant": "joy"}, ActivationLevel: 0.25}},
		{form18, DecodeOptions{}, Assembly{ID: "asm:0a1b2c3d4e5f", Name: "travel", MemoryIDs: []string{"mem_000000000001", "mem_000000000002"},
			LastActivation: at, ActivationCount: 7, SchemaVersion: "1.8", VectorIndexUpdatedAt: at.Truncate(time.Second),
			Tags: []string{"a"}, Topics: []string{"b"}, Inactive: true, MergedFrom: []string{"asm:1"}}},
		{`{"id":"a","last_activated":1741289256.532083}`, DecodeOptions{}, Assembly{ID: "a", LastActivation: at}},
		{`{"id":"a","memories":["m1","m2"]}`, DecodeOptions{}, Assembly{ID: "a", MemoryIDs: []string{"m1", "m2"}}},
		{`{"id":"a","memory_ids":["m2","m2"],"memories":[{"id":"m1"},{"id":"m2"}]}`, DecodeOptions{}, Assembly{ID: "a", MemoryIDs: []string{"m2", "m1"}}},
		{`{"id":"a","memory_ids":["m2"],"memories":17}`, DecodeOptions{}, Assembly{ID: "a", MemoryIDs: []string{"m2"}}},
		{`{"id":"a","memory_ids":null,"keywords":null,"is_active":null,"emotion_profile":null,"memories":null}`, DecodeOptions{}, Assembly{ID: "a"}},
		{`{"id":"a","composite_embedding":"[-4.8e-02  4.46e-02\n 1.]"}`, DecodeOptions{}, Assembly{ID: "a", CompositeEmbedding: []float32{-0.048, 0.0446, 1}}},
		{`{"id":"a","assembly_schema_version":1.80}`, DecodeOptions{}, Assembly{ID: "a", SchemaVersion: "1.80"}},
		{`{"id":"a","creation_time":"2025-03-06T20:27:36.532083"}`, DecodeOptions{Location: time.FixedZone("", 3600)}, Assembly{ID: "a", CreationTime: at}},
		{`{"id":"a","access_count":3.0,"is_active":true}`, DecodeOptions{}, Assembly{ID: "a", AccessCount: 3}},
	} {
		a, err := Decode([]byte(c.doc), c.opts)
		if err != nil || !a.Equal(&c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.doc, a, err, c.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		doc  string
		opts DecodeOptions
		want string
	}{
		{``, DecodeOptions{}, "empty"},
		{`{"assembly_id":"a"`, DecodeOptions{}, "breaks off at byte 18"},
		{`{"name":"n"}`, DecodeOptions{}, "assembly_id: "},
		{`{"id":"b"}`, DecodeOptions{ID: "a"}, `should have the id "a"`},
		{`{"id":"a","memory_ids":"m"}`, DecodeOptions{}, "memory_ids"},
		{`{"id":"a","memory_ids":["m",5]}`, DecodeOptions{}, "memory_ids[1]"},
		{`{"id":"a","memory_ids":["m",""]}`, DecodeOptions{}, "memory_ids[1]"},
		{`{"id":"a","memory_ids":["m","` + strings.Repeat("x", 1025) + `"]}`, DecodeOptions{}, "1024 bytes"},
		{`{"id":"a","memory_ids":["m","n"]}`, DecodeOptions{Limits: Limits{Members: 1}}, "limit: 1 ids"},
		{`{"id":"a","merged_from":["m","n"]}`, DecodeOptions{Limits: Limits{Members: 1}}, "limit: 1 ids"},
		{`{"id":"a","memories":[{"id":"m"},{"content":"x"}]}`, DecodeOptions{}, "memories[1]"},
		{`{"id":"a","memories":{"m":1}}`, DecodeOptions{}, "memories"},
		{`{"id":"a","is_active":1}`, DecodeOptions{}, "is_active"},
		{`{"id":"a","keywords":{"x":1}}`, DecodeOptions{}, "keywords"},
		{`{"id":"a","emotion_profile":[]}`, DecodeOptions{}, "emotion_profile"},
		{`{"id":"a","activation_level":"high"}`, DecodeOptions{}, "activation_level"},
		{`{"id":"a","last_activated":"soon"}`, DecodeOptions{}, "last_activation"},
		{`{"id":"a","composite_embedding":[1,2,3]}`, DecodeOptions{Limits: Limits{EmbeddingDim: 2}}, "2 dimensions"},
		{`{"id":"a","name":"abc"}`, DecodeOptions{Limits: Limits{AssemblyBytes: 10}}, "10 bytes"},
	} {
		a, err := Decode([]byte(c.doc), c.opts)
		if a != nil || !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, %v, want %s", c.doc, a, err, c.want)
		}
	}
	_, err := Decode([]byte(`{"id":"a","memory_ids":["m","n"]}`), DecodeOptions{Limits: Limits{Members: 1}})
	if !errors.Is(err, errs.ErrLimit) {
		t.Errorf("%v is not ErrLimit", err)
	}
}

// Unchanged members stay byte for byte; the stale copies are removed.
func TestUntouchedStays(t *testing.T) {
	doc := encode(t, decode(t, form18))
	want := strings.NewReplacer(
		`"memories": [{"id":"mem_000000000001","content":"old copy","embedding":[1.0,0.0]},{"id":"mem_000000000002","content":"another"},{"id":"mem_000000000001"}]`,
		"\"memory_ids\": [\n    \"mem_000000000001\",\n    \"mem_000000000002\"\n  ]",
		"2025-03-06T19:27:36.532083\"", "2025-03-06T19:27:36.532083Z\"", "36+00:00", "36.000000Z",
		`"tags": ["a"], "topics"`, "\"tags\": [\"a\"],\n  \"topics\"").Replace(form18) + "\n"
	// The named members are in our order, within the places that they have together.
	got, kept := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if json.Unmarshal([]byte(doc), &got) != nil || json.Unmarshal([]byte(want), &kept) != nil || !reflect.DeepEqual(got, kept) {
		t.Errorf("%s\nwant\n%s", doc, want)
	}
	if again := encode(t, decode(t, doc)); again != doc {
		t.Errorf("%s\nbecame\n%s", doc, again)
	}
}

// FAILURES 43: members with other names for the same thing must not become stale.
func TestOlderNamesDoNotLie(t *testing.T) {
	a := decode(t, form18)
	if err := a.Activate(now, 0.5, 0); err != nil {
		t.Fatal(err)
	}
	doc := encode(t, a)
	if strings.Contains(doc, "last_activated") || !strings.Contains(doc, `"id": "asm:`) {
		t.Error(doc)
	}
	a.ID = "b"
	if doc := encode(t, a); strings.Contains(doc, `"id"`) {
		t.Error(doc)
	}
	kept := encode(t, decode(t, form18))
	if !strings.Contains(kept, `"last_activated": 1741289256.532083`) {
		t.Error(kept)
	}
	differs := encode(t, decode(t, `{"id":5,"assembly_id":"a"}`))
	if !strings.Contains(differs, `"id": 5`) {
		t.Error(differs)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	a := decode(t, form1)
	a.Tags, a.Topics, a.MergedFrom = []string{"t"}, []string{"p"}, []string{"m"}
	want := *a.Clone()
	c := a.Clone()
	if !reflect.DeepEqual(c, a) {
		t.Errorf("%+v clones as %+v", a, c)
	}
	for _, list := range c.lists() {
		(*list.value)[0] = "changed"
	}
	c.CompositeEmbedding[0], c.HyperbolicEmbedding[0] = 5, 5
	c.EmotionProfile["joy"] = 5
	if !a.Equal(&want) {
		t.Errorf("%+v", a)
	}
	if a.Equal(c) {
		t.Error("a change is not seen")
	}
}

func TestAsAMember(t *testing.T) {
	var v struct{ A Assembly }
	if err := json.Unmarshal([]byte(`{"A":{"name":"n","x":1.0}}`), &v); err != nil || v.A.Name != "n" {
		t.Fatalf("%+v, %v", v, err)
	}
	if out, err := json.Marshal(v); err != nil || string(out) != `{"A":{"name":"n","x":1.0}}` {
		t.Errorf("%s, %v", out, err)
	}
}
