package scopes

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/working"
)

// TestWorkingLarge: a scope does not grow beyond what can be read again; operations that make it smaller
// are permitted, and then it may grow.
func TestWorkingLarge(t *testing.T) {
	t.Parallel()
	st, err := varve.Open(t.Context(), t.TempDir(), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	storetest.Inner(st).Scopes.Tune().Most = 100 << 10
	m, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; err == nil && n < 1000; n++ {
		if n%10 == 5 {
			err = st.Flush(t.Context())
		} else {
			err = m.Set(t.Context(), "k"+strings.Repeat("x", n), strings.Repeat("v", 2000))
		}
	}
	var field *varve.FieldError
	if !errors.Is(err, varve.ErrTooLarge) || !errors.As(err, &field) || n < 30 {
		t.Fatalf("after %d: %v", n, err)
	}
	if _, err := m.Checkpoint(t.Context(), ""); !errors.Is(err, varve.ErrTooLarge) {
		t.Errorf("a checkpoint: %v", err)
	}
	if _, err := m.Clear(t.Context()); err != nil {
		t.Error(err)
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if err := m.Set(t.Context(), "k", "v"); err != nil {
		t.Error(err)
	}
}
