package memstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)

func decode(t testing.TB, doc string) *Memory {
	t.Helper()
	m, err := Decode([]byte(doc), DecodeOptions{})
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return m
}

func encode(t testing.TB, m *Memory) string {
	t.Helper()
	doc, err := m.Encode(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

func TestEveryInputVariant(t *testing.T) {
	at := time.Date(2025, 3, 6, 19, 27, 36, 532083000, time.UTC)
	berlin := time.FixedZone("CET", 3600)
	for _, c := range []struct {
		doc  string
		opts DecodeOptions
		want Memory
	}{
		{`{"id":"a"}`, DecodeOptions{}, Memory{ID: "a"}},
		{`{"id":"a","content":"c"}`, DecodeOptions{ID: "a"}, Memory{ID: "a", Content: "c"}},
		{`{"id":"a","text":"c"}`, DecodeOptions{}, Memory{ID: "a", Content: "c"}},
		{`{"id":"a","text":"old","content":"new"}`, DecodeOptions{}, Memory{ID: "a", Content: "new"}},
		{`{"id":"a","significance":0.8599999999999999}`, DecodeOptions{}, Memory{ID: "a", QuickRecalScore: 0.8599999999999999}},
		{`{"id":"a","quickrecal_score":1}`, DecodeOptions{}, Memory{ID: "a", QuickRecalScore: 1}},
		{`{"id":"a","last_access":1741289256.5320833}`, DecodeOptions{}, Memory{ID: "a", LastAccessTime: at}},
		{`{"id":"a","timestamp":"2025-03-06T19:27:36.532083+00:00"}`, DecodeOptions{}, Memory{ID: "a", Timestamp: at}},
		{`{"id":"a","timestamp":"2025-03-06T19:27:36.532083"}`, DecodeOptions{}, Memory{ID: "a", Timestamp: at}},
		{`{"id":"a","timestamp":"2025-03-06T20:27:36.532083"}`, DecodeOptions{Location: berlin}, Memory{ID: "a", Timestamp: at}},
		{`{"id":"a","timestamp":1741289256532}`, DecodeOptions{Location: berlin}, Memory{ID: "a", Timestamp: at.Truncate(time.Millisecond)}},
		{`{"id":"a","timestamp":1741289256}`, DecodeOptions{}, Memory{ID: "a", Timestamp: at.Truncate(time.Second)}},
		{`{"id":"a","quickrecal_updated":null,"expires_at":"2025-03-06T19:27:36.532083Z"}`, DecodeOptions{}, Memory{ID: "a", ExpiresAt: at}},
		{`{"id":"a","embedding":null}`, DecodeOptions{}, Memory{ID: "a"}},
		{`{"id":"a","embedding":[0.0,0.0]}`, DecodeOptions{}, Memory{ID: "a", Embedding: []float32{0, 0}}},
		{`{"id":"a","embedding":"[-4.8e-02  4.46e-02\n 1.]"}`, DecodeOptions{}, Memory{ID: "a", Embedding: []float32{-0.048, 0.0446, 1}}},
		{`{"id":"a","hyperbolic_embedding":[1,2]}`, DecodeOptions{}, Memory{ID: "a", HyperbolicEmbedding: []float32{1, 2}}},
		{`{"id":"a","access_count":3.0}`, DecodeOptions{}, Memory{ID: "a", AccessCount: 3}},
		{`{"id":"a","metadata":null,"content":null,"access_count":null,"quickrecal_score":null}`, DecodeOptions{}, Memory{ID: "a"}},
		{`{"id":"a","metadata":{"n":12345678901234567890,"f":1.0,"timestamp":1741289256.5}}`, DecodeOptions{},
			Memory{ID: "a", Metadata: map[string]any{"n": json.Number("12345678901234567890"), "f": 1.0, "timestamp": 1741289256.5}}},
		{`{"content":"c"}`, DecodeOptions{IDOptional: true}, Memory{Content: "c"}},
	} {
		m, err := Decode([]byte(c.doc), c.opts)
		if err != nil || !m.Equal(&c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.doc, m, err, c.want)
		}
	}
}

func TestOlderNamesAreWrittenUnderOurs(t *testing.T) {
	m := decode(t, `{"x":1.0,"significance":0.50,"id":"a","last_access":1741289256,"text":"c","migrated_to_hierarchical":true}`)
	want := "{\n  \"x\": 1.0,\n  \"id\": \"a\",\n  \"content\": \"c\",\n  \"quickrecal_score\": 0.50,\n" +
		"  \"last_access_time\": \"2025-03-06T19:27:36.000000Z\",\n  \"migrated_to_hierarchical\": true\n}\n"
	if got := encode(t, m); got != want {
		t.Error(got)
	}
	both := decode(t, `{"id":"a","content":"new","text":"old"}`)
	if got := encode(t, both); !strings.Contains(got, `"text": "old"`) || !strings.Contains(got, `"content": "new"`) {
		t.Error(got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		doc  string
		opts DecodeOptions
		want string
	}{
		{``, DecodeOptions{}, "empty"},
		{`{"id":"a"`, DecodeOptions{}, "breaks off at byte 9"},
		{`{"id":"a","id":"b"}`, DecodeOptions{}, "duplicate"},
		{`{"id":"a","text":"x","text":"y"}`, DecodeOptions{}, "duplicate"},
		{`{"content":"c"}`, DecodeOptions{}, "id: "},
		{`{"id":"b"}`, DecodeOptions{ID: "a"}, `should have the id "a"`},
		{`{}`, DecodeOptions{ID: "a", IDOptional: true}, `should have the id "a"`},
		{`{"id":5}`, DecodeOptions{}, "id \"5\""},
		{`{"id":"` + strings.Repeat("x", 1025) + `"}`, DecodeOptions{}, "1024 bytes"},
		{`{"id":"a","content":{}}`, DecodeOptions{}, "content"},
		{`{"id":"a","embedding":"[1 ... 2]"}`, DecodeOptions{}, "lost"},
		{`{"id":"a","embedding":[1,"x"]}`, DecodeOptions{}, "embedding[1]"},
		{`{"id":"a","embedding":[1,1e39]}`, DecodeOptions{}, "embedding[1]"},
		{`{"id":"a","embedding":[NaN]}`, DecodeOptions{}, "'N'"},
		{`{"id":"a","embedding":[1,2,3]}`, DecodeOptions{Limits: Limits{EmbeddingDim: 2}}, "2 dimensions"},
		{`{"id":"a","timestamp":"soon"}`, DecodeOptions{}, "timestamp"},
		{`{"id":"a","last_access":"soon"}`, DecodeOptions{}, "last_access_time"},
		{`{"id":"a","quickrecal_score":"0.5"}`, DecodeOptions{}, "quickrecal_score"},
		{`{"id":"a","quickrecal_score":1e400}`, DecodeOptions{}, "quickrecal_score"},
		{`{"id":"a","access_count":1.5}`, DecodeOptions{}, "access_count"},
		{`{"id":"a","access_count":true}`, DecodeOptions{}, "access_count"},
		{`{"id":"a","metadata":[]}`, DecodeOptions{}, "metadata"},
		{`{"id":"a","metadata":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, DecodeOptions{}, "depth 100"},
		{`{"id":"a","metadata":{"a":1}}`, DecodeOptions{Limits: Limits{MemoryBytes: 10}}, "10 bytes"},
	} {
		m, err := Decode([]byte(c.doc), c.opts)
		if m != nil || !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, %v, want %s", c.doc, m, err, c.want)
		}
	}
}

const rich = `{
  "x-before": [1.0,2],
  "id": "caf\u00e9",
  "content": "a\/b",
  "embedding": [1.0, 0.10000000149011612, -0.0],
  "timestamp": "2025-03-06T19:27:36Z",
  "quickrecal_score": 1.0,
  "quickrecal_updated": null,
  "metadata": {"z":1.00,"session_id":"s","deep":{"b":1E2,"a":[1.0]}},
  "x-mid": {"k":  null},
  "access_count": 3.0,
  "last_access_time": "2025-03-06T19:27:36.5Z",
  "hyperbolic_embedding": [1.00, 2e0],
  "created_at": "2025-03-06T19:27:36.000001Z",
  "updated_at": "2025-03-06T19:27:36.123456789Z",
  "x-after": 1e0
}
`

func TestUnchangedIsByteForByte(t *testing.T) {
	m := decode(t, rich)
	if got := encode(t, m); got != rich {
		t.Errorf("unchanged: %s", got)
	}
	copied := *m.Clone()
	if got := encode(t, &copied); got != rich {
		t.Errorf("cloned: %s", got)
	}
}

// A change of any one field changes its own member and no other byte.
func TestOneChangeChangesOneMember(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	atText := `"2030-01-01T00:00:00.000000Z"`
	for name, c := range map[string]struct {
		change   func(*Memory)
		old, new string
	}{
		"id":      {func(m *Memory) { m.ID = "b" }, `"caf\u00e9"`, `"b"`},
		"content": {func(m *Memory) { m.Content = "" }, `"a\/b"`, `""`},
		"embedding": {func(m *Memory) { m.Embedding[1] = 0.5 }, `[1.0, 0.10000000149011612, -0.0]`,
			"[\n    1,\n    0.5,\n    -0\n  ]"},
		"embedding sign": {func(m *Memory) { m.Embedding[2] = 0 }, `[1.0, 0.10000000149011612, -0.0]`, "[\n    1,\n    0.1,\n    0\n  ]"},
		"embedding gone": {func(m *Memory) { m.Embedding = nil }, "  \"embedding\": [1.0, 0.10000000149011612, -0.0],\n", ""},
		"timestamp":      {func(m *Memory) { m.Timestamp = at }, `"2025-03-06T19:27:36Z"`, atText},
		"score":          {func(m *Memory) { m.QuickRecalScore = 0.25 }, `score": 1.0`, `score": 0.25`},
		"score zero":     {func(m *Memory) { m.QuickRecalScore = 0 }, `score": 1.0`, `score": 0`},
		"score updated":  {func(m *Memory) { m.QuickRecalUpdated = at }, `"quickrecal_updated": null`, `"quickrecal_updated": ` + atText},
		"metadata": {func(m *Memory) { m.Metadata["n"] = 1 }, `{"z":1.00,"session_id":"s","deep":{"b":1E2,"a":[1.0]}}`,
			"{\n    \"z\": 1.00,\n    \"session_id\": \"s\",\n    \"deep\": {\"b\":1E2,\"a\":[1.0]},\n    \"n\": 1\n  }"},
		"metadata nil": {func(m *Memory) { m.Metadata = nil }, `{"z":1.00,"session_id":"s","deep":{"b":1E2,"a":[1.0]}}`, "{}"},
		"count":        {func(m *Memory) { m.AccessCount++ }, `3.0`, `4`},
		"last access":  {func(m *Memory) { m.LastAccessTime = at }, `"2025-03-06T19:27:36.5Z"`, atText},
		"no access":    {func(m *Memory) { m.LastAccessTime = time.Time{} }, "  \"last_access_time\": \"2025-03-06T19:27:36.5Z\",\n", ""},
		"hyperbolic":   {func(m *Memory) { m.HyperbolicEmbedding = []float32{1} }, `[1.00, 2e0]`, "[\n    1\n  ]"},
		"created":      {func(m *Memory) { m.CreatedAt = at }, `"2025-03-06T19:27:36.000001Z"`, atText},
		"updated":      {func(m *Memory) { m.UpdatedAt = at }, `"2025-03-06T19:27:36.123456789Z"`, atText},
		"expires": {func(m *Memory) { m.ExpiresAt = at }, `"updated_at": "2025-03-06T19:27:36.123456789Z",`,
			"\"updated_at\": \"2025-03-06T19:27:36.123456789Z\",\n  \"expires_at\": " + atText + ","},
	} {
		original := decode(t, rich)
		changed := original.Clone()
		c.change(changed)
		if want := strings.Replace(rich, c.old, c.new, 1); want == rich || encode(t, changed) != want {
			t.Errorf("%s: got %s\nwant %s", name, encode(t, changed), want)
		}
		if encode(t, original) != rich {
			t.Errorf("%s: the clone's change reached the original", name)
		}
		// The member that was written has the value of the field.
		if again := decode(t, encode(t, changed)); !again.Equal(changed) && name != "metadata" && name != "embedding gone" {
			t.Errorf("%s: %+v reads back as %+v", name, changed, again)
		}
	}
}

// A copy by value shares maps, but no change is lost in either.
func TestCopyByValue(t *testing.T) {
	a := decode(t, rich)
	b := *a
	b.Content = "other"
	b.QuickRecalUpdated = now
	if encode(t, a) != rich || !strings.Contains(encode(t, &b), `"other"`) {
		t.Error("a change of the copy reached the original, or was lost")
	}
	b.Metadata["session_id"] = "t"
	if !strings.Contains(encode(t, &b), `"session_id": "t"`) {
		t.Error("a change in the shared map was lost")
	}
}

func TestNothingIsAliased(t *testing.T) {
	data := []byte(rich)
	m, err := Decode(data, DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := m.Clone()
	for i := range data {
		data[i] = 'x'
	}
	c.Embedding[0], c.Metadata["z"], c.Metadata["deep"].(map[string]any)["a"].([]any)[0] = 9, 9, 9
	if got := encode(t, m); got != rich {
		t.Error(got)
	}
	list := &Memory{Metadata: map[string]any{"l": []string{"a"}, "m": map[string]int{"a": 1}}}
	copied := list.Clone()
	copied.Metadata["l"].([]string)[0] = "b"
	copied.Metadata["m"].(map[string]int)["a"] = 2
	if list.Metadata["l"].([]string)[0] != "a" || list.Metadata["m"].(map[string]int)["a"] != 1 {
		t.Error("Clone shares typed lists or maps")
	}
}

func TestStandardJSON(t *testing.T) {
	m := decode(t, rich)
	m.Version = 7
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(rich)); err != nil {
		t.Fatal(err)
	}
	if string(raw) != want.String() {
		t.Errorf("got  %s\nwant %s", raw, &want)
	}
	back := Memory{Version: 9}
	if err := json.Unmarshal(raw, &back); err != nil || !back.Equal(m) || back.Version != 9 {
		t.Errorf("%+v, %v", back, err)
	}
	list, err := json.Marshal([]Memory{{ID: "a"}})
	if err != nil || string(list) != `[{"id":"a","content":"","quickrecal_score":0,"metadata":{},"access_count":0}]` {
		t.Errorf("%s, %v", list, err)
	}
	if _, err := json.Marshal(Memory{QuickRecalScore: math.NaN()}); err == nil {
		t.Error("NaN was written")
	}
}

func TestHelpers(t *testing.T) {
	m := Memory{Metadata: map[string]any{"session_id": "s", "category": "c", "key": 5}}
	if m.Session() != "s" || m.Category() != "c" || m.Key() != "" || new(Memory).Session() != "" {
		t.Error("Session, Category, Key")
	}
	if m.Expired(now) {
		t.Error("expired without a time")
	}
	m.ExpiresAt = now
	if !m.Expired(now) || m.Expired(now.Add(-1)) {
		t.Error("Expired")
	}
	h := Hyperbolic([]float32{3, 4})
	if s := math.Tanh(2.5) / 5; h[0] != float32(3*s) || h[1] != float32(4*s) {
		t.Error(h)
	}
	if !reflect.DeepEqual(Hyperbolic([]float32{0, 0}), []float32{0, 0}) {
		t.Error("zero vector")
	}
	var _ json.Marshaler = Memory{}
	var _ json.Unmarshaler = &Memory{}
}
