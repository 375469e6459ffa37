package scopes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestWorkingOlderPutBack: git, or a user, puts an older file of a scope back while a host has the scope
// in memory. The next flush writes the scope's present state, keeps the older file in quarantine, and
// reports it. A file that another process flushes is not treated like that.
func TestWorkingOlderPutBack(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		dropped, read := i%2 == 1, i/2 == 1 // whether the host has it in memory, or releases it
		dir := t.TempDir()
		var aside []string
		open := func() *varve.Store {
			st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, Listener: func(e varve.Event) {
				if e.Kind == varve.EventEdit && e.Err == nil {
					aside = append(aside, e.Path)
				}
			}})
			fixture.Must(t, err)
			t.Cleanup(func() { _ = st.Close() })
			return st
		}
		st, other := open(), open()
		m := wm(t, st)
		fixture.Must(t, m.Set(t.Context(), "first", 1))
		fixture.Must(t, st.Flush(t.Context()))
		name := scopeFile(t, dir)
		older, err := os.ReadFile(name)
		fixture.Must(t, err)
		for i := range 3 { // by turns
			fixture.Must(t, m.Set(t.Context(), "second", i))
			fixture.Must(t, st.Flush(t.Context()))
			fixture.Must(t, m.Set(t.Context(), "third", i))
			fixture.Must(t, other.Flush(t.Context()))
			fixture.Must(t, wm(t, other).Set(t.Context(), "fourth", i))
			fixture.Must(t, st.Flush(t.Context()))
		}
		if read {
			hasValue(t, m, "fourth", 2.0)
		}
		if len(aside) > 0 {
			t.Fatalf("set aside: %q", aside)
		}
		if dropped {
			_, err := m.Clear(t.Context())
			fixture.Must(t, err)
			fixture.Must(t, st.Flush(t.Context()))
		}
		fixture.Must(t, os.WriteFile(name, older, 0o600))
		fixture.Must(t, m.Set(t.Context(), "fifth", 5))
		fixture.Must(t, st.Flush(t.Context()))
		hasValue(t, m, "fifth", 5.0)
		if !dropped {
			hasValue(t, m, "fourth", 2.0)
		}
		if b, err := os.ReadFile(name); err != nil || !strings.Contains(string(b), "fifth") {
			t.Errorf("the scope is not in its file: %s, %v", b, err)
		}
		kept, err := filepath.Glob(filepath.Join(dir, "quarantine", "*"+filepath.Base(name)))
		fixture.Must(t, err)
		if len(aside) != 1 || len(kept) != 1 {
			t.Fatalf("dropped %v, read %v: told %q, in quarantine %q", dropped, read, aside, kept)
		}
		if b, err := os.ReadFile(kept[0]); err != nil || string(b) != string(older) {
			t.Errorf("%s, %v", b, err)
		}
	}
}
