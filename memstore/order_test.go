package memstore

import "testing"

// An order has the name of its key, or that of the member of a document.
func TestParseOrder(t *testing.T) {
	for name, want := range map[string]string{
		"id": "id", "-size": "-size", "created_at": "created", "-updated_at": "-updated", "quickrecal_score": "score", "-score": "-score",
		"created-at": "", "--score": "", "": "", "_at": "",
	} {
		o, err := ParseOrder(name, "")
		if want == "" {
			if err == nil {
				t.Errorf("%q is taken as %s", name, o.Key())
			}
			continue
		}
		if err != nil || o.Key() != want {
			t.Errorf("%q: %v", name, err)
			continue
		}
		o.At = &Place{Key: 7, ID: "a b"}
		if again, err := ParseOrder(name, o.Place()); err != nil || *again.At != *o.At {
			t.Errorf("%q goes on at %v, %v", name, again, err)
		}
	}
}
