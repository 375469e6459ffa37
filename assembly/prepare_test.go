package assembly

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
)

func TestPrepareNew(t *testing.T) {
	a := Assembly{ID: "A/1", Name: `n"`, MemoryIDs: []string{"m2", "m1", "m2"}, CompositeEmbedding: []float32{0, 1}, Tags: []string{"t"}}
	doc, line, err := Prepare(&a, nil, now, PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantDoc := `{
  "assembly_id": "A/1",
  "name": "n\"",
  "description": "",
  "memory_ids": [
    "m2",
    "m1"
  ],
  "composite_embedding": [
    0,
    1
  ],
  "emotion_profile": {},
  "keywords": [],
  "tags": [
    "t"
  ],
  "creation_time": "2026-01-02T03:04:05.000006Z",
  "access_count": 0,
  "activation_level": 0,
  "activation_count": 0,
  "is_active": true,
  "vector_index_updated_at": "2026-01-02T03:04:05.000006Z",
  "created_at": "2026-01-02T03:04:05.000006Z",
  "updated_at": "2026-01-02T03:04:05.000006Z"
}
`
	if string(doc) != wantDoc {
		t.Errorf("document:\n%s", doc)
	}
	wantLine := fmt.Sprintf(`{"filepath":"assemblies/%s","created_at":"2026-01-02T03:04:05.000006Z",`+
		`"updated_at":"2026-01-02T03:04:05.000006Z","member_count":2,"content_hash":"sha256:%x","size":%d,"dimension":2,`+
		`"name":"n\"","members":["m2","m1"]}`, jsondoc.FileName("A/1"), sha256.Sum256(doc), len(doc))
	if string(line) != wantLine {
		t.Errorf("line:\n%s\nwant\n%s", line, wantLine)
	}
	if back := decode(t, string(doc)); !back.Equal(&a) {
		t.Errorf("%+v reads back as %+v", a, back)
	}
	empty := Assembly{Inactive: true}
	_, line, err = Prepare(&empty, nil, now, PrepareOptions{})
	if err != nil || !strings.HasSuffix(string(line), `,"dimension":0,"is_active":false,"members":[]}`) {
		t.Errorf("%s, %v", line, err)
	}
	if u, err := uuid.Parse(empty.ID); err != nil || u.Version() != 7 {
		t.Errorf("%q: %v", empty.ID, err)
	}
}

// FAILURES 39: the time is that at which the vector was stored, and nothing else sets it.
func TestVectorStamp(t *testing.T) {
	late, later := now.Add(time.Hour).Truncate(time.Microsecond), now.Add(2*time.Hour)
	a := Assembly{ID: "a", VectorIndexUpdatedAt: later}
	prepare := func(old *Previous, now time.Time, opts PrepareOptions) (doc, line []byte) {
		t.Helper()
		doc, line, err := Prepare(&a, old, now, opts)
		if err != nil {
			t.Fatal(err)
		}
		return doc, line
	}
	doc, _ := prepare(nil, now, PrepareOptions{})
	if !a.VectorIndexUpdatedAt.IsZero() || bytes.Contains(doc, []byte("vector_index")) {
		t.Errorf("no vector, and stamped: %s", doc)
	}
	a.CompositeEmbedding = []float32{1, 0}
	doc, line := prepare(&Previous{Document: doc}, late, PrepareOptions{VectorID: 9})
	if !a.VectorIndexUpdatedAt.Equal(late) || !bytes.Contains(line, []byte(`"dimension":2,"vector_id":9,`)) {
		t.Errorf("%s %s", doc, line)
	}
	// For an unchanged composite, time and number stay, whatever the caller put there.
	for _, set := range []time.Time{{}, later, late} {
		a.VectorIndexUpdatedAt = set
		a.Name += "x"
		doc, line = prepare(&Previous{Document: doc, VectorID: 17}, later, PrepareOptions{VectorID: 9})
		if !a.VectorIndexUpdatedAt.Equal(late) || !bytes.Contains(line, []byte(`"vector_id":17,`)) {
			t.Errorf("%s %s", doc, line)
		}
	}
	a.CompositeEmbedding = []float32{0, 1}
	doc, line = prepare(&Previous{Document: doc, VectorID: 17}, later, PrepareOptions{})
	if !a.VectorIndexUpdatedAt.Equal(later.Truncate(time.Microsecond)) || bytes.Contains(line, []byte("vector_id")) {
		t.Errorf("%s %s", doc, line)
	}
	a.CompositeEmbedding = nil
	doc, _ = prepare(&Previous{Document: doc, VectorID: 17}, later, PrepareOptions{})
	if !a.VectorIndexUpdatedAt.IsZero() || bytes.Contains(doc, []byte("vector_index")) {
		t.Errorf("the vector is gone, the stamp stays: %s", doc)
	}
	// An imported composite is stored only now.
	imported := decode(t, form18)
	imported.CompositeEmbedding = []float32{1}
	if _, _, err := Prepare(imported, nil, now, PrepareOptions{}); err != nil || !imported.VectorIndexUpdatedAt.Equal(now.Truncate(time.Microsecond)) {
		t.Errorf("%v, %v", imported.VectorIndexUpdatedAt, err)
	}
}

func TestPrepareTimes(t *testing.T) {
	early, late := now.Add(-time.Hour), now.Add(time.Hour)
	for _, c := range []struct {
		a                 Assembly
		old               *Previous
		created, creation time.Time
	}{
		{Assembly{}, nil, now.Truncate(1000), now.Truncate(1000)},
		{Assembly{CreatedAt: late, CreationTime: late}, nil, late, late},
		{Assembly{CreatedAt: late}, &Previous{CreatedAt: early}, early, now.Truncate(1000)},
	} {
		c.a.ID, c.a.UpdatedAt = "a", late
		if _, _, err := Prepare(&c.a, c.old, now, PrepareOptions{}); err != nil {
			t.Fatal(err)
		}
		if !c.a.CreatedAt.Equal(c.created) || !c.a.CreationTime.Equal(c.creation) || !c.a.UpdatedAt.Equal(now.Truncate(1000)) {
			t.Errorf("%+v", c.a)
		}
	}
}

// Unknown members survive a Put of an Assembly that was never decoded.
func TestPrepareCarriesThePreviousText(t *testing.T) {
	a := Assembly{ID: "asm:0a1b2c3d4e5f", Name: "travel", MemoryIDs: []string{"x"}}
	old := []byte(form18)
	doc, _, err := Prepare(&a, &Previous{CreatedAt: now, Document: old}, now, PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(doc, []byte(`"synchronization_state": {"n": 1.0}`)) || bytes.Contains(doc, []byte("mem_")) {
		t.Errorf("%s", doc)
	}
	if back := decode(t, string(doc)); !back.Equal(&a) {
		t.Errorf("%+v reads back as %+v", a, back)
	}
	if string(old) != form18 {
		t.Error("the old text was written to")
	}
	if _, _, err := Prepare(&Assembly{ID: "a"}, &Previous{Document: []byte("{torn")}, now, PrepareOptions{}); err != nil {
		t.Errorf("a damaged version stands in the way: %v", err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	many := make([]string, 100_001)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, c := range []struct {
		a     Assembly
		lim   Limits
		field string
		limit string
	}{
		{Assembly{ID: "abc"}, Limits{IDBytes: 2}, "assembly_id", "2 bytes"},
		{Assembly{Name: strings.Repeat("x", 1025)}, Limits{}, "name", "1024 bytes"},
		{Assembly{Name: "a\xff"}, Limits{}, "name", ""},
		{Assembly{Description: strings.Repeat("x", 16<<20+1)}, Limits{}, "assembly", "16777216 bytes of JSON"},
		{Assembly{Description: strings.Repeat("x", 2000)}, Limits{AssemblyBytes: 2000}, "assembly", "2000 bytes of JSON"},
		{Assembly{MemoryIDs: many}, Limits{}, "memory_ids", "100000 ids"},
		{Assembly{MemoryIDs: []string{"a", ""}}, Limits{}, "memory_ids[1]", "1 to 1024 bytes"},
		{Assembly{MemoryIDs: []string{"\xff"}}, Limits{}, "memory_ids[0]", ""},
		{Assembly{MergedFrom: []string{"a", "b"}}, Limits{Members: 1}, "merged_from", "1 ids"},
		{Assembly{Keywords: []string{"a", "\xff"}}, Limits{}, "keywords[1]", ""},
		{Assembly{CompositeEmbedding: make([]float32, 3)}, Limits{EmbeddingDim: 2}, "composite_embedding", "2 dimensions"},
		{Assembly{CompositeEmbedding: []float32{0, float32(math.NaN())}}, Limits{}, "composite_embedding[1]", ""},
		{Assembly{HyperbolicEmbedding: []float32{float32(math.Inf(1))}}, Limits{}, "hyperbolic_embedding[0]", ""},
		{Assembly{ActivationLevel: math.NaN()}, Limits{}, "activation_level", ""},
		{Assembly{EmotionProfile: map[string]any{"x": math.Inf(1)}}, Limits{}, "emotion_profile.x", ""},
		{Assembly{LastActivation: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, Limits{}, "last_activation", "years 1 to 9999"},
	} {
		for _, source := range []string{"", form1} {
			a := c.a
			if a.ID == "" {
				a.ID = "a"
			}
			if source != "" {
				a.source = decode(t, source).source
			}
			before := a
			_, _, err := Prepare(&a, nil, now, PrepareOptions{Limits: c.lim})
			var f *errs.FieldError
			if !errors.As(err, &f) || !errors.Is(err, errs.ErrInvalid) || f.Field != c.field || f.Limit != c.limit {
				t.Errorf("%s: %#v %v", c.field, f, err)
			}
			if a.UpdatedAt != before.UpdatedAt || len(a.MemoryIDs) != len(before.MemoryIDs) {
				t.Errorf("%s: refused, and changed", c.field)
			}
		}
	}
	if err := CheckMembers(many, Limits{}); !errors.Is(err, errs.ErrLimit) {
		t.Error(err)
	}
	if err := CheckMembers(many[1:], Limits{}); err != nil {
		t.Error(err)
	}
}

// Writing and reading both accept the largest value of every field.
func TestAtTheLimits(t *testing.T) {
	a := Assembly{ID: strings.Repeat("é", 512), Name: strings.Repeat("n", 1024), CompositeEmbedding: make([]float32, 65536)}
	for i := range 100_000 {
		a.MemoryIDs = append(a.MemoryIDs, fmt.Sprintf("%036d", i))
	}
	doc, line, err := Prepare(&a, nil, now, PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Decode(doc, DecodeOptions{ID: a.ID}); err != nil || !back.Equal(&a) {
		t.Error(err)
	}
	if ids, err := MembersOf(line); err != nil || !slices.Equal(ids, a.MemoryIDs) {
		t.Errorf("%d members, %v", len(ids), err)
	}
}

func TestMembersOf(t *testing.T) {
	for _, ids := range [][]string{nil, {"m"}, {`,"members":[`, `"]}`, "\\", "é\x00\n", "]"}} {
		a := Assembly{ID: "a", Name: `,"members":["x"]},`, MemoryIDs: ids}
		_, line, err := Prepare(&a, nil, now, PrepareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := MembersOf(line); err != nil || !slices.Equal(got, ids) {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
	if got, err := MembersOf([]byte(`{"filepath":"memories/a.json","size":3}`)); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, line := range []string{`{"a":1,"members":[}`, `{"a":1,"members":["m"`, `{"a":1,"members":["m"],"x":[1]}`, `{"a":1,"members":[5]}`, `{"a":1,"members":["m"]]}`} {
		if got, err := MembersOf([]byte(line)); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s: %v, %v", line, got, err)
		}
	}
}
