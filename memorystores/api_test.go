package memorystores

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// TestTold: a client is told what is wrong with a path or content, and nothing of other fields.
func TestTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field  string
		status int
		told   bool
	}{{"path", 400, true}, {"content", 400, true}, {"/home/anna/config.json history_bytes", 500, false}} {
		err := &varve.FieldError{Field: c.field, Value: "the value", Err: errors.New("a secret")}
		e := toRefusal(t.Context(), err)
		if e.status != c.status || strings.Contains(e.text, "a secret") != c.told {
			t.Errorf("%s: %d %s", c.field, e.status, e.text)
		}
	}
}
