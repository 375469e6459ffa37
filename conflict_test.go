package varve_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/working"
)

// TestConflictError verifies that the error of a failed condition names the document, what was expected and what was
// found: for programs through errors.As, for users in words.
func TestConflictError(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	m, err := st.Put(ctx, varve.Memory{ID: "m", Content: "x"})
	if err != nil {
		t.Fatal(err)
	}
	as, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "m", MemoryIDs: []string{"m"}})
	if err != nil {
		t.Fatal(err)
	}
	other := m.Version + 8
	work, err := st.Working().Open(ctx, working.Scope{Session: "s"}, nil)
	if err == nil {
		err = work.Set(ctx, "k", 1)
	}
	e, _, eerr := work.Entry(ctx, "k")
	if err != nil || eerr != nil {
		t.Fatal(err, eerr)
	}
	of := func(_ any, err error) error { return err }
	apply := func(options ...varve.PutOption) error {
		b := new(varve.Batch)
		b.Put(varve.Memory{ID: "first", Content: "x"})
		b.Put(varve.Memory{ID: "m", Content: "x"}, options...)
		return st.Apply(ctx, b)
	}
	for name, c := range map[string]struct {
		err  error
		want varve.ConflictError
	}{
		"version": {of(st.Put(ctx, m, varve.IfVersion(other))),
			varve.ConflictError{ID: "m", Expected: other, Found: m.Version}},
		"absent":    {of(st.Put(ctx, m, varve.IfAbsent())), varve.ConflictError{ID: "m", Found: m.Version}},
		"version 0": {of(st.Put(ctx, m, varve.IfVersion(0))), varve.ConflictError{ID: "m", Found: m.Version}},
		"gone": {of(st.Put(ctx, varve.Memory{ID: "none", Content: "x"}, varve.IfVersion(other))),
			varve.ConflictError{ID: "none", Expected: other}},
		"unmodified": {of(st.Put(ctx, m, varve.IfUnmodifiedSince(time.Unix(1, 0)))),
			varve.ConflictError{ID: "m", Found: m.Version, Since: time.Unix(1, 0), Written: m.UpdatedAt}},
		"delete": {st.Delete(ctx, "m", varve.IfVersion(other)),
			varve.ConflictError{ID: "m", Expected: other, Found: m.Version}},
		"update": {of(st.Update(ctx, "m", func(m *varve.Memory) error { m.Content = "y"; return nil },
			varve.IfVersion(other))), varve.ConflictError{ID: "m", Expected: other, Found: m.Version}},
		"transact": {st.Transact(ctx, func(tx *varve.Tx) error { return of(tx.Put(m, varve.IfVersion(other))) }),
			varve.ConflictError{ID: "m", Expected: other, Found: m.Version}},
		"batch": {apply(varve.IfVersion(other)), varve.ConflictError{ID: "m", Expected: other, Found: m.Version}},
		"async": {of(st.PutAsync(m, varve.IfVersion(other)).Wait(ctx)),
			varve.ConflictError{ID: "m", Expected: other, Found: m.Version}},
		"assembly": {of(st.Assemblies().Put(ctx, as, varve.IfVersion(other))),
			varve.ConflictError{ID: "m", Expected: other, Found: as.Version}},
		"assembly, absent": {of(st.Assemblies().Put(ctx, as, varve.IfAbsent())),
			varve.ConflictError{ID: "m", Found: as.Version}},
		"regroup": {of(storetest.Inner(st).Repairing().RebuildAssembly(ctx, nil, "m", other, nil)),
			varve.ConflictError{ID: "m", Expected: other, Found: as.Version, Remedy: "run memctl repair again"}},
		"working": {&working.ConflictError{Name: "k", Expected: other, Found: e.Version},
			varve.ConflictError{ID: "k", Expected: other, Found: e.Version}},
	} {
		var got *varve.ConflictError
		if !errors.As(c.err, &got) || !errors.Is(c.err, varve.ErrConflict) {
			t.Errorf("%s: no *ConflictError that matches ErrConflict: %v", name, c.err)
			continue
		}
		if !got.Written.Equal(c.want.Written) {
			t.Errorf("%s: written at %v, want %v", name, got.Written, c.want.Written)
		}
		if got.Written = c.want.Written; *got != c.want {
			t.Errorf("%s: %+v, want %+v", name, *got, c.want)
		}
		for _, part := range []string{fmt.Sprintf("%q", got.ID), fmt.Sprint(got.Found), "again"} {
			if name != "working" && !strings.Contains(c.err.Error(), part) && part != "0" {
				t.Errorf("%s does not say %s: %v", name, part, c.err)
			}
		}
	}
	var batch *varve.BatchError
	if err := apply(varve.IfAbsent()); !errors.As(err, &batch) || batch.Index != 1 || batch.Key != "m" {
		t.Errorf("which operation it was: %v", err)
	}
	if _, err := st.Get(ctx, "first"); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("the rest of the batch: %v", err)
	}
}
