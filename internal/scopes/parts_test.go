package scopes_test

import (
	"testing"

	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/scopes"
	"github.com/varve-db/varve/working"
)

// TestKeys: a value that was set can be read, and the scope is among those of the store.
func TestKeys(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	home := scopes.NewHome(p.Scopes)
	m, err := working.Open(t.Context(), home, working.Scope{Session: "task"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set(t.Context(), "plan", "one step"); err != nil {
		t.Fatal(err)
	}
	if v, found, err := m.Get(t.Context(), "plan"); err != nil || !found || v != "one step" {
		t.Errorf("%v, found %v, %v", v, found, err)
	}
	keys, bad, err := p.Scopes.Keys(t.Context())
	if len(keys) != 1 || len(bad) > 0 || err != nil {
		t.Errorf("%q, %v, %v", keys, bad, err)
	}
}
