package scopes

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
)

// The limits on names and values apply to one value: a value that could not be read again is refused,
// and a scope of many values is read as a whole.
func TestWorkingWide(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx, dir := t.Context(), t.TempDir()
	st, err := varve.Open(ctx, dir, nil)
	fixture.Must(t, err)
	m := wm(t, st)
	var names bytes.Buffer
	names.WriteString(`{"-":0`)
	for i := range 700_000 {
		names.WriteString(`,"`)
		names.Write(strconv.AppendInt(nil, int64(i), 36))
		names.WriteString(`":0`)
	}
	names.WriteByte('}')
	for _, key := range []string{"one", "two"} {
		fixture.Must(t, m.Set(ctx, key, json.RawMessage(names.Bytes())))
	}
	var limit *varve.FieldError
	if err := m.Set(ctx, "three", make([]any, 5<<20)); !errors.Is(err, varve.ErrTooLarge) || !errors.As(err, &limit) ||
		limit.Field != "three" {
		t.Errorf("a value that could not be read: %v", err)
	}
	fixture.Must(t, st.Close())
	st, err = varve.Open(ctx, dir, nil)
	fixture.Must(t, err)
	defer st.Close()
	v, found, err := wm(t, st).Get(ctx, "two")
	if got, _ := v.(map[string]any); err != nil || !found || len(got) != 700_001 {
		t.Errorf("%d members, %v", len(got), err)
	}
}
