package memstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
)

func TestPrepareNew(t *testing.T) {
	m := Memory{ID: "A/1", Content: "x", QuickRecalScore: 0.85, Metadata: map[string]any{"session_id": "s\"1"},
		Embedding: []float32{0.25}, ExpiresAt: time.Date(2027, 1, 1, 1, 0, 0, 1999, time.FixedZone("", 3600))}
	doc, line, err := Prepare(&m, nil, now, PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantDoc := `{
  "id": "A/1",
  "content": "x",
  "embedding": [
    0.25
  ],
  "timestamp": "2026-01-02T03:04:05.000006Z",
  "quickrecal_score": 0.85,
  "metadata": {
    "session_id": "s\"1"
  },
  "access_count": 0,
  "created_at": "2026-01-02T03:04:05.000006Z",
  "updated_at": "2026-01-02T03:04:05.000006Z",
  "expires_at": "2027-01-01T00:00:00.000001999Z"
}
`
	if string(doc) != wantDoc {
		t.Errorf("document:\n%s", doc)
	}
	wantLine := fmt.Sprintf(`{"filepath":"memories/%s","created_at":"2026-01-02T03:04:05.000006Z",`+
		`"updated_at":"2026-01-02T03:04:05.000006Z","quickrecal_score":0.85,"content_hash":"sha256:%x","size":%d,"dimension":1,`+
		`"session_id":"s\"1","expires_at":"2027-01-01T00:00:00.000001Z"}`, jsondoc.FileName("A/1"), sha256.Sum256(doc), len(doc))
	if string(line) != wantLine {
		t.Errorf("line:\n%s\nwant\n%s", line, wantLine)
	}
	if back := decode(t, string(doc)); !back.Equal(&m) {
		t.Errorf("%+v reads back as %+v", m, back)
	}
	plain := Memory{ID: "a"}
	_, line, err = Prepare(&plain, nil, now, PrepareOptions{})
	if err != nil || bytes.Contains(line, []byte("session_id")) || bytes.Contains(line, []byte("expires_at")) {
		t.Errorf("%s, %v", line, err)
	}
}

func TestPrepareTimes(t *testing.T) {
	early, late := now.Add(-time.Hour), now.Add(time.Hour)
	old := &Previous{CreatedAt: early}
	for _, c := range []struct {
		m                  Memory
		old                *Previous
		created, timestamp time.Time
	}{
		{Memory{}, nil, now.Truncate(1000), now.Truncate(1000)},
		{Memory{CreatedAt: late, Timestamp: late}, nil, late, late},
		{Memory{CreatedAt: late}, old, early, now.Truncate(1000)},
		{Memory{CreatedAt: late}, &Previous{}, late, now.Truncate(1000)},
	} {
		c.m.ID = "a"
		c.m.UpdatedAt = late
		if _, _, err := Prepare(&c.m, c.old, now, PrepareOptions{}); err != nil {
			t.Fatal(err)
		}
		if !c.m.CreatedAt.Equal(c.created) || !c.m.Timestamp.Equal(c.timestamp) || !c.m.UpdatedAt.Equal(now.Truncate(1000)) {
			t.Errorf("%+v", c.m)
		}
	}
}

func TestPrepareMakesAnID(t *testing.T) {
	var last string
	for i := range 1000 {
		at := now.Add(time.Duration(i) * 7 * time.Microsecond)
		m := Memory{}
		if _, _, err := Prepare(&m, nil, at, PrepareOptions{Rand: bytes.NewReader(bytes.Repeat([]byte{byte(i * 89)}, 16))}); err != nil {
			t.Fatal(err)
		}
		u, err := uuid.Parse(m.ID)
		if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 || m.ID <= last {
			t.Fatalf("%s after %s: %v", m.ID, last, err)
		}
		if sec, _ := u.Time().UnixTime(); sec != at.Unix() {
			t.Fatalf("%s is of %d, not %d", m.ID, sec, at.Unix())
		}
		last = m.ID
	}
	m := Memory{Content: "kept"}
	if _, _, err := Prepare(&m, nil, now, PrepareOptions{Rand: bytes.NewReader(nil)}); err == nil || m.ID != "" {
		t.Errorf("no randomness: %q, %v", m.ID, err)
	}
}

// Unknown members survive a Put of a Memory that was never decoded.
func TestPrepareCarriesThePreviousText(t *testing.T) {
	m := Memory{ID: "café", Content: "a/b", QuickRecalScore: 0.5}
	doc, _, err := Prepare(&m, &Previous{CreatedAt: now, Document: []byte(rich)}, now, PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []string{`"x-before": [1.0,2]`, `"x-mid": {"k":  null}`, `"x-after": 1e0`, `"content": "a\/b"`, `"quickrecal_score": 0.5`, `"metadata": {}`} {
		if !strings.Contains(string(doc), keep) {
			t.Errorf("%s is missing in %s", keep, doc)
		}
	}
	if strings.Contains(string(doc), `"embedding"`) {
		t.Errorf("the old embedding stays: %s", doc)
	}
	if back := decode(t, string(doc)); !back.Equal(&m) {
		t.Errorf("%+v reads back as %+v", m, back)
	}
	if _, _, err := Prepare(&Memory{ID: "a"}, &Previous{Document: []byte("{torn")}, now, PrepareOptions{}); err != nil {
		t.Errorf("a damaged version stands in the way: %v", err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	cyclic := map[string]any{}
	cyclic["me"] = cyclic
	deep := any("x")
	for range 99 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		m     Memory
		lim   Limits
		field string
		limit string
	}{
		{Memory{ID: strings.Repeat("x", 1025)}, Limits{}, "id", "1024 bytes"},
		{Memory{ID: "abc"}, Limits{IDBytes: 2}, "id", "2 bytes"},
		{Memory{ID: "\xff"}, Limits{}, "id", ""},
		{Memory{Content: "a\xffb"}, Limits{}, "content", ""},
		{Memory{Content: strings.Repeat("x", 16<<20+1)}, Limits{}, "memory", "16777216 bytes of JSON"},
		{Memory{Content: strings.Repeat("\x00", 3<<20)}, Limits{}, "memory", "16777216 bytes of JSON"},
		{Memory{Content: big}, Limits{MemoryBytes: 1 << 20}, "memory", "1048576 bytes of JSON"},
		{Memory{Embedding: make([]float32, 65537)}, Limits{}, "embedding", "65536 dimensions"},
		{Memory{Embedding: make([]float32, 3)}, Limits{EmbeddingDim: 2}, "embedding", "2 dimensions"},
		{Memory{HyperbolicEmbedding: make([]float32, 65537)}, Limits{}, "hyperbolic_embedding", "65536 dimensions"},
		{Memory{Embedding: []float32{0, float32(math.NaN())}}, Limits{}, "embedding[1]", ""},
		{Memory{HyperbolicEmbedding: []float32{float32(math.Inf(-1))}}, Limits{}, "hyperbolic_embedding[0]", ""},
		{Memory{QuickRecalScore: math.NaN()}, Limits{}, "quickrecal_score", ""},
		{Memory{QuickRecalScore: math.Inf(1)}, Limits{}, "quickrecal_score", ""},
		{Memory{Metadata: map[string]any{"a": []any{1, math.NaN()}}}, Limits{}, "metadata.a[1]", ""},
		{Memory{Metadata: map[string]any{"a": "\xff"}}, Limits{}, "metadata.a", ""},
		{Memory{Metadata: map[string]any{"\xff": "a"}}, Limits{}, `metadata["\xff"]`, ""},
		{Memory{Metadata: map[string]any{"c": make(chan int)}}, Limits{}, "metadata.c", ""},
		{Memory{Metadata: map[string]any{"c": map[string]any{"f": func() {}}}}, Limits{}, "metadata.c.f", ""},
		{Memory{Metadata: map[string]any{"n": json.Number("1e")}}, Limits{}, "metadata.n", ""},
		{Memory{Metadata: cyclic}, Limits{}, "metadata.me.me", "depth 100"},
		{Memory{Metadata: map[string]any{"d": deep}}, Limits{}, "metadata.d[0][0]", "depth 100"},
		{Memory{Metadata: map[string]any{"d": []any{[]any{}}}}, Limits{Depth: 3}, "metadata.d[0]", "depth 3"},
		{Memory{Metadata: map[string]any{"session_id": 5}}, Limits{}, "metadata.session_id", ""},
		{Memory{Metadata: map[string]any{"session_id": "a\xffb"}}, Limits{}, "metadata.session_id", ""},
		{Memory{Metadata: map[string]any{"session_id": strings.Repeat("s", 1025)}}, Limits{}, "metadata.session_id", "1024 bytes"},
		{Memory{Timestamp: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, Limits{}, "timestamp", "years 1 to 9999"},
		{Memory{ExpiresAt: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)}, Limits{}, "expires_at", "years 1 to 9999"},
	} {
		// The same for a Memory with a text and for one without.
		for _, source := range []string{"", rich} {
			m := c.m
			if m.ID == "" {
				m.ID = "a"
			}
			if source != "" {
				m.source = decode(t, source).source
			}
			before := m
			_, _, err := Prepare(&m, nil, now, PrepareOptions{Limits: c.lim})
			var f *errs.FieldError
			if !errors.As(err, &f) || !errors.Is(err, errs.ErrInvalid) || !strings.HasPrefix(f.Field, c.field) || f.Limit != c.limit {
				t.Errorf("%s: %#v %v", c.field, f, err)
			}
			if c.limit != "" && !strings.HasPrefix(c.limit, "years") && !errors.Is(err, errs.ErrTooLarge) {
				t.Errorf("%s: %v is not ErrTooLarge", c.field, err)
			}
			if m.UpdatedAt != before.UpdatedAt || m.ID != before.ID {
				t.Errorf("%s: refused, and changed", c.field)
			}
		}
	}
	// A memory that was read under a higher limit is not written under a lower one.
	m, err := Decode([]byte(`{"id":"a","x":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`), DecodeOptions{Limits: Limits{Depth: 300}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Prepare(m, nil, now, PrepareOptions{}); !errors.Is(err, errs.ErrTooLarge) {
		t.Error(err)
	}
}

// Writing and reading both accept the largest value of every field.
func TestAtTheLimits(t *testing.T) {
	m := Memory{ID: strings.Repeat("é", 512), Embedding: make([]float32, 65536), Metadata: map[string]any{"session_id": strings.Repeat("s", 1024)}}
	doc, _, err := Prepare(&m, nil, now, PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(doc, DecodeOptions{ID: m.ID}); err != nil {
		t.Error(err)
	}
	exact := Limits{MemoryBytes: len(doc)}
	if _, err := m.Encode(exact); err != nil {
		t.Error(err)
	}
	if _, err := Decode(doc, DecodeOptions{Limits: exact}); err != nil {
		t.Error(err)
	}
	exact.MemoryBytes--
	if _, err := m.Encode(exact); !errors.Is(err, errs.ErrTooLarge) {
		t.Error(err)
	}
	if _, err := Decode(doc, DecodeOptions{Limits: exact}); !errors.Is(err, errs.ErrTooLarge) {
		t.Error(err)
	}
}
