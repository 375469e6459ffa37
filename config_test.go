package varve_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// TestConfigWrongMember verifies that one wrong value in config.json is named, and disables no other limit.
func TestConfigWrongMember(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ member, says string }{
		{`"max_memories":"x"`, `config.json max_memories "x": must be a whole number`},
		{`"max_memories":1.5`, `config.json max_memories 1.5: must be a whole number`},
		{`"max_age":-1`, "config.json max_age -1: invalid (limit: 0 (none) to "},
		{`"auto_repair":"no"`, `config.json auto_repair "no": must be true or false`},
		{`"at_limit":7`, "config.json at_limit 7: must be a text"},
		{`"at_limit":"drop"`, `config.json at_limit "drop": invalid (limit: refuse, `},
		{`"vectors":[1, 2]`, "config.json vectors [1,2]: must be an object"},
		{`"vectors":{"dimension":"x"}`, `config.json vectors.dimension {"dimension":"x"}: must be a whole number`},
		{`"vectors":{"metric":"l3"}`, "config.json vectors: "},
		{`"varve":"x"`, `config.json varve "x": must be a whole number`},
	} {
		dir := t.TempDir()
		if err := fixture.Open(t, dir, nil).Close(); err != nil {
			t.Fatal(err)
		}
		text := `{"max_bytes":3000,"varve":1,` + c.member + "}"
		if strings.Contains(c.member, "varve") {
			text = `{"max_bytes":3000,` + c.member + "}"
		}
		if err := os.WriteFile(filepath.Join(dir, settings.Name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var heard []error
		st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Listener: func(e varve.Event) {
			if e.Kind == varve.EventConfig {
				heard = append(heard, e.Err)
			}
		}})
		p := st.Admin().OpenReport().Problems
		if len(p) != 1 || len(heard) != 1 || !errors.Is(p[0], varve.ErrInvalid) || !strings.HasPrefix(p[0].Error(), c.says) {
			t.Errorf("%s: %v, heard %v", c.member, p, heard)
		}
		if got := st.Admin().Config(); got.MaxBytes != 3000 || got.Format != 1 {
			t.Errorf("%s: %+v holds", c.member, got)
		}
		if _, err := st.Put(t.Context(), varve.Memory{Content: strings.Repeat("x", 4000)}); !errors.Is(err, varve.ErrLimit) {
			t.Errorf("%s: a put beyond max_bytes: %v", c.member, err)
		}
		// Setting one member repairs the file, and leaves the others unchanged.
		set := st.Admin().Config()
		set.MaxMemories = 7
		if err := st.Admin().SetConfig(set); err != nil {
			t.Error(err)
		}
		if h := st.Health(t.Context()); !h.OK {
			t.Error(h.Problems)
		}
		b, err := os.ReadFile(filepath.Join(dir, settings.Name))
		if err != nil || !bytes.Contains(b, []byte(`"max_bytes": 3000`)) || !bytes.Contains(b, []byte(`"max_memories": 7`)) {
			t.Errorf("%s: %s %v", c.member, b, err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestConfigNewerWithOtherTypes verifies that a newer format is refused even if other members have other types.
func TestConfigNewerWithOtherTypes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := fixture.Open(t, dir, nil).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, settings.Name), []byte(`{"auto_repair":{"at":"open"},"varve":2}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := varve.Open(t.Context(), dir, nil); !errors.Is(err, varve.ErrNewerFormat) {
		if err == nil {
			_ = st.Close()
		}
		t.Error(err)
	}
}

// TestOpenAFile opens a file in place of a folder.
func TestOpenAFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{name, filepath.Join(name, "in")} {
		if st, err := varve.Open(t.Context(), dir, nil); err == nil {
			_ = st.Close()
			t.Error("opened")
		} else if os.PathSeparator == '/' && !errors.Is(err, varve.ErrNoStore) {
			t.Error(err)
		}
	}
}

// TestUpdateConfig verifies that two processes that each change one setting both have it changed, and that changes to a
// caller's copy of the settings have no effect.
func TestUpdateConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := fixture.Open(t, dir, &varve.Options{NoBackground: true}),
		fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for i := range 20 {
		before := b.Admin().Config()
		threshold := i + 100 // sizes and, on coarse clocks, times stay the same
		err := a.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error { c.FlushThreshold = &threshold; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Admin().UpdateConfig(t.Context(),
			func(c *varve.Config) error { c.MaxMemories = int64(i + 100); return nil }); err != nil {
			t.Fatal(err)
		}
		if c := b.Admin().Config(); c.MaxMemories != int64(i+100) || c.FlushThreshold == nil || *c.FlushThreshold != i+100 {
			t.Fatalf("%d: %+v, before %+v", i, c, before)
		}
	}
	threshold := b.Admin().Config().FlushThreshold
	*threshold = 7
	if c := b.Admin().Config(); *c.FlushThreshold != 119 {
		t.Errorf("flush_threshold became %d in the store", *c.FlushThreshold)
	}
	refused := errors.New("no")
	if err := a.Admin().UpdateConfig(t.Context(),
		func(c *varve.Config) error { c.MaxMemories = 1; return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	if err := a.Admin().UpdateConfig(t.Context(),
		func(c *varve.Config) error { c.MaxAge = -1; return nil }); !errors.Is(err, varve.ErrInvalid) {
		t.Error(err)
	}
	if c := b.Admin().Config(); c.MaxMemories != 119 || c.MaxAge != 0 {
		t.Errorf("%+v", c)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

// TestConfigReadAgain verifies that a config.json is read again that was written within the clock's step, and with the
// same length, or that could not be read the first time.
func TestConfigReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fails := false
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if fails && op.Kind == wrap.Open && strings.HasSuffix(op.Path, settings.Name) {
			return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EMFILE}
		}
		return nil
	})
	st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: fsys}}))
	other := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	name := filepath.Join(dir, settings.Name)
	set := func(dim int) {
		t.Helper()
		c := other.Admin().Config()
		c.Vectors = &varve.VectorConfig{Dimension: dim}
		fixture.Must(t, other.Admin().SetConfig(c))
		fixture.Must(t, os.Chtimes(name, time.Time{}, time.Unix(1_700_000_000, 0)))
	}
	says := func() int {
		c := st.Admin().Config()
		return fixture.VectorSettings(c).Dimension
	}
	for _, dim := range []int{3, 4} {
		set(dim)
		if !storetest.Inner(st).Engine.Settings().Reread() || says() != dim {
			t.Errorf("it says %d, not %d", says(), dim)
		}
	}
	set(12)
	fails = true
	if storetest.Inner(st).Engine.Settings().Reread() || says() != 4 {
		t.Errorf("not read, and it says %d", says())
	}
	fails = false
	if !storetest.Inner(st).Engine.Settings().Reread() || says() != 12 {
		t.Errorf("it says %d", says())
	}
}

// TestUpdateConfigOfAnotherHand verifies that members that a user has set in an invalid file survive a change by the
// store, and that a file of a newer format is left unchanged.
func TestUpdateConfigOfAnotherHand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	name := filepath.Join(dir, settings.Name)
	more := func(c *varve.Config) error { c.MaxMemories = 7; return nil }
	for _, c := range []struct {
		text, stays string
		err         error
	}{
		{`{"varve":1,"max_bytes":5000,"at_limit":"drop"}`, `"max_bytes": 5000`, nil},
		{`{"varve":2,"max_bytes":"big"}`, `{"varve":2,"max_bytes":"big"}`, varve.ErrNewerFormat},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := st.Admin().UpdateConfig(t.Context(), more); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.text, err)
		}
		if b, err := os.ReadFile(name); err != nil || !bytes.Contains(b, []byte(c.stays)) {
			t.Errorf("%s became %s, %v", c.text, b, err)
		}
	}
}
