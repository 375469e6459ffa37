package logs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// If a condition is on a memory that does not exist, the error says so, and not that it was changed
// meanwhile.
func TestConditionOnNothing(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	m, err := st.Put(t.Context(), varve.Memory{ID: "deleted", Content: "x"})
	if err == nil {
		err = st.Delete(t.Context(), "deleted")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"never", "deleted"} {
		for what, err := range map[string]error{
			"put": func() error {
				_, err := st.Put(t.Context(), varve.Memory{ID: id, Content: "y"}, varve.IfVersion(m.Version))
				return err
			}(),
			"delete": st.Delete(t.Context(), id, varve.IfVersion(m.Version)),
		} {
			if !errors.Is(err, varve.ErrConflict) {
				t.Errorf("%s of %s: %v", what, id, err)
				continue
			}
			for _, part := range []string{fmt.Sprintf("%q", id), fmt.Sprint(m.Version), "does not exist"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s of %s does not say %s: %v", what, id, part, err)
				}
			}
			if strings.Contains(err.Error(), "changed") {
				t.Errorf("%s of %s: nobody changed it: %v", what, id, err)
			}
		}
	}
	if m, err = st.Put(t.Context(), varve.Memory{ID: "there", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(t.Context(), m, varve.IfVersion(m.Version+8)); !errors.Is(err,
		varve.ErrConflict) || !strings.Contains(err.Error(), "changed") {
		t.Error(err)
	}
	if _, err := st.Put(t.Context(), m, varve.IfUnmodifiedSince(time.Unix(0, 0))); !errors.Is(err, varve.ErrConflict) {
		t.Error(err)
	}
}

// A condition of a batch applies to the operation that supersedes its own, even if the batch is prepared
// again for another reason.
func TestConditionsInherited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := fixture.Open(t, dir, &varve.Options{NoBackground: true}),
		fixture.Open(t, dir, &varve.Options{NoBackground: true})
	put := func(id string) varve.Memory { return varve.Memory{ID: id, Content: "x"} }
	if _, err := one.Put(t.Context(), put("heard of late")); err != nil {
		t.Fatal(err)
	}
	b := new(varve.Batch)
	b.Put(put("heard of late"))
	b.Put(put("a"), varve.IfAbsent())
	b.Put(put("a"))
	if err := two.Apply(t.Context(), b); err != nil {
		t.Error(err)
	}
	var be *varve.BatchError
	if err := two.Apply(t.Context(), b); !errors.Is(err, varve.ErrConflict) || !errors.As(err, &be) || be.Index != 2 {
		t.Errorf("of one that is there by now: %v", err)
	}
	b = new(varve.Batch)
	b.Put(put("c"), varve.IfAbsent())
	b.Put(put("c"))
	b.Put(put("c"))
	if err := two.Apply(t.Context(), b); err != nil {
		t.Error(err)
	}
	for i, conds := range [][3][]varve.PutOption{{nil, nil, {varve.IfAbsent()}},
		{{varve.IfAbsent()}, {varve.IfVersion(7)}, nil}, {{varve.IfAbsent()}, nil, {varve.IfVersion(7)}}} {
		b := new(varve.Batch)
		for _, c := range conds {
			b.Put(put("b"), c...)
		}
		if err := two.Apply(t.Context(), b); !errors.Is(err, varve.ErrInvalid) || !errors.As(err, &be) ||
			be.Index != []int{2, 1, 2}[i] {
			t.Errorf("%d: %v", i, err)
		}
	}
}
