package varve

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A condition on a memory that is not there says so; it was not changed meanwhile.
func TestConditionOnNothing(t *testing.T) {
	st := openTest(t, t.TempDir(), &Options{NoBackground: true})
	m, err := st.Put(t.Context(), Memory{ID: "deleted", Content: "x"})
	if err == nil {
		err = st.Delete(t.Context(), "deleted")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"never", "deleted"} {
		for what, err := range map[string]error{
			"put": func() error {
				_, err := st.Put(t.Context(), Memory{ID: id, Content: "y"}, IfVersion(m.Version))
				return err
			}(),
			"delete": st.Delete(t.Context(), id, IfVersion(m.Version)),
		} {
			if !errors.Is(err, ErrConflict) {
				t.Errorf("%s of %s: %v", what, id, err)
				continue
			}
			for _, part := range []string{fmt.Sprintf("%q", id), fmt.Sprint(m.Version), "there is none"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s of %s does not say %s: %v", what, id, part, err)
				}
			}
			if strings.Contains(err.Error(), "changed") {
				t.Errorf("%s of %s: nobody changed it: %v", what, id, err)
			}
		}
	}
	if m, err = st.Put(t.Context(), Memory{ID: "there", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(t.Context(), m, IfVersion(m.Version+8)); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "changed") {
		t.Error(err)
	}
	if _, err := st.Put(t.Context(), m, IfUnmodifiedSince(time.Unix(0, 0))); !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
}
