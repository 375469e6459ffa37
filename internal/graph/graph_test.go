package graph

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/varve-db/varve/memstore"
)

// name generates difficult names: separators, escapes, lengths around the limits.
func name() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a|%\x00é:#~ 7C25]{0,6}`),
		rapid.String(),
		rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(rapid.SampledFrom([]string{"a", "|", "é"}).Draw(t, "of"), rapid.IntRange(100, 900).Draw(t, "n"))
		}),
	)
}

// TestIDsAreInjective verifies that two names never have the same id, and that no id is too long.
func TestIDsAreInjective(t *testing.T) {
	type id struct{ entity, from, kind, to string }
	seen := map[string]id{}
	rapid.Check(t, func(t *rapid.T) {
		a := id{entity: name().Draw(t, "name")}
		r := Relation{name().Draw(t, "from"), name().Draw(t, "to"), name().Draw(t, "type")}
		b := id{"relation", r.From, r.Type, r.To}
		for text, of := range map[string]id{EntityID(a.entity): a, r.ID(): b} {
			if was, ok := seen[text]; ok && was != of {
				t.Fatalf("%q and %q have the id %q", was, of, text)
			}
			seen[text] = of
			if len(text) > 1024 || !IsID(text) {
				t.Fatalf("id %q", text)
			}
		}
	})
	if (Relation{"a|b", "c", "d"}).ID() == (Relation{"a", "b|c", "d"}).ID() || (Relation{"a", "b", "c"}).ID() == (Relation{"b", "a", "c"}).ID() {
		t.Error("the parts run into each other")
	}
}

// TestRoundTrip verifies that a graph that is written as memories is read back, also from the files, and as lines.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(1, 1<<32).Draw(t, "at"), 5).UTC()
		extra := map[string]any{"confidence": json.Number("1.5"), "n": json.Number("9007199254740993"), "a<b": []any{"x", nil}}
		e := Entity{name().Draw(t, "name"), rapid.String().Draw(t, "type"), rapid.SliceOf(rapid.String()).Draw(t, "observations")}
		r := Relation{name().Draw(t, "from"), name().Draw(t, "to"), name().Draw(t, "type")}
		for _, m := range []memstore.Memory{e.Memory(at, extra), r.Memory(at, extra)} {
			doc, err := m.Encode(memstore.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			back, err := memstore.Decode(doc, memstore.DecodeOptions{ID: m.ID})
			if err != nil {
				t.Fatal(err)
			}
			if !back.Timestamp.Equal(at) {
				t.Fatalf("created %v, read %v", at, back.Timestamp)
			}
			n, ok := Read(m.ID, doc)
			if !ok || !n.At.Equal(at) || !n.Expires.IsZero() {
				t.Fatalf("%v: %+v of %s", ok, n, doc)
			}
			if is, isEntity := EntityOf(back); isEntity != (n.Entity != nil) || isEntity && !reflect.DeepEqual(is, *n.Entity) {
				t.Fatalf("%+v, read %+v of %s", is, n.Entity, doc)
			}
			if is, isRelation := RelationOf(back); isRelation != (n.Relation != nil) || isRelation && is != *n.Relation {
				t.Fatalf("%+v, read %+v of %s", is, n.Relation, doc)
			}
			text, ok, err := AppendLine(nil, back)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			line, err := ParseLine(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if line.ID() != m.ID || !reflect.DeepEqual(line.Extra, extra) {
				t.Fatalf("%s: %+v", text, line)
			}
			if strings.ContainsRune(string(text), '\n') {
				t.Fatalf("a line feed in %q", text)
			}
			if read, ok := EntityOf(back); ok {
				if read.Name != e.Name || read.Type != e.Type || !equal(read.Observations, e.Observations) || !equal(line.Entity.Observations, e.Observations) {
					t.Fatalf("%+v became %+v and %+v", e, read, line.Entity)
				}
			} else if read, ok := RelationOf(back); !ok || read != r || *line.Relation != r {
				t.Fatalf("%+v became %+v and %+v", r, read, line.Relation)
			}
		}
	})
}

func equal(a, b []string) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

// TestSetKeepsTheRest verifies that a change leaves unknown members of the entity unchanged.
func TestSetKeepsTheRest(t *testing.T) {
	m, err := memstore.Decode([]byte(`{"id":"entity:Ada","content":"x","mine":1.50,"metadata":{"category":"entity","note":"kept","observations":["a"]}}`), memstore.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e, ok := EntityOf(m)
	if !ok || e.Name != "Ada" || e.Type != "" {
		t.Fatal(ok, e)
	}
	e.Observations = append(e.Observations, "b")
	e.Set(m)
	doc, err := m.Encode(memstore.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"mine": 1.50`, `"note": "kept"`, `"content": "Ada\na\nb"`} {
		if !strings.Contains(string(doc), want) {
			t.Errorf("%s is missing in %s", want, doc)
		}
	}
}

// TestNotOfTheGraph verifies that a memory that only resembles one of a graph is not read as one.
func TestNotOfTheGraph(t *testing.T) {
	for _, m := range []memstore.Memory{
		{ID: "note"}, {ID: "entity"}, {ID: "relation:a|b|c"}, {ID: "entity#abc"},
		{ID: "entity:Ada", Metadata: map[string]any{"key": "Bob"}},
		{ID: "relation:a|b|c", Metadata: map[string]any{"from": "a", "to": "b", "relationType": "c"}},
	} {
		if _, ok := EntityOf(&m); ok {
			t.Errorf("%q is taken for an entity", m.ID)
		}
		if _, ok := RelationOf(&m); ok {
			t.Errorf("%q is taken for a relation", m.ID)
		}
	}
}

func TestParseLine(t *testing.T) {
	for _, c := range []struct{ line, id, is string }{
		{`{"type":"entity","name":"A","entityType":"t","observations":["x",1,null]}`, "entity:A", "t x 1 "},
		{`{"name":"A","entityType":"t","observations":[]}`, "entity:A", "t"},
		{`{"type":"entity","name":"A"}`, "entity:A", ""},
		{`{"from":"A","to":"B","relationType":"knows","at":1}`, "relation:A|knows|B", ""},
		{`{"type":"entity","name":"\ud800"}`, "entity:\ufffd", ""},
		{`{"type":"entity","name":1}`, "", ""},
		{`{"type":"entity","name":"A","observations":"x"}`, "", ""},
		{`{"type":"other","name":"A","entityType":"t","observations":[]}`, "", ""},
		{`{"id":"m","content":"x","name":"A"}`, "", ""},
		{`[]`, "", ""}, {`{"type":"entity","name":"A"} x`, "", ""}, {`{"type":"enti`, "", ""}, {``, "", ""},
	} {
		l, err := ParseLine([]byte(c.line))
		if c.id == "" {
			if err == nil {
				t.Errorf("%s became %+v", c.line, l)
			}
			continue
		}
		if err != nil || l.ID() != c.id {
			t.Errorf("%s: %v, %v", c.line, l, err)
			continue
		}
		if l.Entity != nil && strings.TrimSuffix(l.Entity.Type+" "+strings.Join(l.Entity.Observations, " "), " ") != strings.TrimSuffix(c.is, " ") {
			t.Errorf("%s: %+v", c.line, l.Entity)
		}
	}
	if _, err := ParseLine([]byte(`{"content":"x"}`)); !errors.Is(err, ErrNoLine) {
		t.Error(err)
	}
}
