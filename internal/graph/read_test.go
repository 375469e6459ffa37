package graph

import (
	"reflect"
	"testing"

	"github.com/varve-db/varve/memstore"
)

// TestReadOfEditedDocuments verifies that Read gives, for a document that another program wrote, the same result as
// decoding the whole memory, or refuses the document.
func TestReadOfEditedDocuments(t *testing.T) {
	for _, c := range []struct {
		id, doc string
		simple  bool
	}{
		{"entity:Ada", `{"id":"entity:Ada","timestamp":"2026-01-02T03:04:05Z","metadata":{"key":"Ada","observations":["a","b"]},"embedding":[1,2],"mine":{"metadata":{"key":"x"}}}`, true},
		{"entity:Ada", `{ "metadata" : { "observations" : [ ] , "entityType":"t", "key" : "Ada" } , "id" : "entity:Ada" }`, true},
		{"entity:é", `{"id":"entity:\u00e9","metadata":{"key":"\u00e9","observations":["\ud83d\ude00\n"]}}`, true},
		{"entity:Ada", `{"id":"entity:Ada","expires_at":"2026-01-02T03:04:05.5Z","metadata":{"key":"Ada"}}`, true},
		{"relation:a|b|c", `{"id":"relation:a|b|c","metadata":{"to":"c","from":"a","relationType":"b"}}`, true},
		{"entity:Ada", `{"id":"entity:Ada","metadata":{"observations":["a"]}}`, false},                                // its name is only in the id
		{"entity:Ada", `{"id":"entity:Ada","metadata":{"key":"Ada","observations":["a",7]}}`, false},                  // somebody's edit
		{"entity:Ada", `{"id":"entity:Ada","metadata":{"key":"Ada","observations":"a"}}`, false},                      // another
		{"entity:Ada", `{"id":"entity:Ada","metadata":{"key":"Ada","entityType":null}}`, false},                       //
		{"entity:Ada", `{"id":"entity:Ada","metadata":{"key":"Eve"}}`, false},                                         // no entity
		{"entity:Ada", `{"id":"entity:Ada","metadata":null}`, false},                                                  //
		{"entity:Ada", `{"id":"entity:Ada"}`, false},                                                                  //
		{"entity:Ada", `{"id":"entity:Ada","timestamp":"2026-01-02T03:04:05+02:00","metadata":{"key":"Ada"}}`, false}, // of another zone
		{"entity:Ada", `{"id":"entity:Ada","timestamp":1767323045,"metadata":{"key":"Ada"}}`, false},                  //
		{"relation:a|b|c", `{"id":"relation:a|b|c","metadata":{"to":"d","from":"a","relationType":"b"}}`, false},
		{"relation:a|b|c", `{"id":"relation:a|b|c","metadata":{"to":"c","from":"a"}}`, false},
		{"note", `{"id":"note","metadata":{"key":"note"}}`, false},
	} {
		m, err := memstore.Decode([]byte(c.doc), memstore.DecodeOptions{ID: c.id})
		if err != nil {
			t.Fatalf("%s: %v", c.doc, err)
		}
		n, ok := Read(c.id, []byte(c.doc))
		if ok != c.simple {
			t.Errorf("%s: simple is %v", c.doc, ok)
		}
		if !ok {
			continue
		}
		if e, is := EntityOf(m); is && (n.Entity == nil || !equal(e.Observations, n.Entity.Observations) || e.Name != n.Entity.Name || e.Type != n.Entity.Type) {
			t.Errorf("%s: %+v, read %+v", c.doc, e, n.Entity)
		}
		if r, is := RelationOf(m); is && !reflect.DeepEqual(&r, n.Relation) {
			t.Errorf("%s: %+v, read %+v", c.doc, r, n.Relation)
		}
		if !n.At.Equal(m.Timestamp) || !n.Expires.Equal(m.ExpiresAt) {
			t.Errorf("%s: %v and %v, read %v and %v", c.doc, m.Timestamp, m.ExpiresAt, n.At, n.Expires)
		}
	}
	// A document that is cut anywhere is refused, without a panic.
	doc := `{"id":"entity:Ada","timestamp":"2026-01-02T03:04:05Z","metadata":{"key":"Ada","observations":["a","b"]}}`
	for i := range doc {
		if n, ok := Read("entity:Ada", []byte(doc[:i])); ok {
			t.Errorf("%s: %+v", doc[:i], n)
		}
	}
}

// FuzzRead: Read gives the same result as Decode, EntityOf and RelationOf for whatever it accepts.
func FuzzRead(f *testing.F) {
	for _, doc := range []string{
		`{"id":"entity:Ada","timestamp":"2026-01-02T03:04:05.123456Z","metadata":{"key":"Ada","entityType":"p","observations":["a","b\n\"\u00e9\ud83d\ude00"]},"embedding":[1,2]}`,
		`{"id":"entity:","expires_at":"2026-01-02T03:04:05Z","metadata":{"key":"","observations":[],"extra":{"a":[1,{"b":null}],"c":"}"}}}`,
		`{"id":"relation:a|b|c","content":"a b c","metadata":{"from":"a","relationType":"b","to":"c","key":"k"}}`,
		`{"metadata":{"key":"A\\","observations":["]",","]},"id":"entity:A\\","text":"{"}`,
		"{\t\"id\" : \"entity:\u0130\" ,\r\n\"metadata\":{ \"key\":\"\\u0130\" } }",
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := memstore.Decode(doc, memstore.DecodeOptions{})
		if err != nil {
			_, _ = Read("entity:Ada", doc) // no panic
			return
		}
		n, ok := Read(m.ID, doc)
		if !ok {
			return
		}
		e, isEntity := EntityOf(m)
		r, isRelation := RelationOf(m)
		if isEntity != (n.Entity != nil) || isRelation != (n.Relation != nil) || !n.At.Equal(m.Timestamp) || !n.Expires.Equal(m.ExpiresAt) ||
			isEntity && (e.Name != n.Entity.Name || e.Type != n.Entity.Type || !equal(e.Observations, n.Entity.Observations)) || isRelation && r != *n.Relation {
			t.Fatalf("%s: %+v %+v at %v until %v, read %+v %+v at %v until %v", doc, e, r, m.Timestamp, m.ExpiresAt, n.Entity, n.Relation, n.At, n.Expires)
		}
	})
}
