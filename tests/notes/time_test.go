package notes

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// TestWriteAt: content that was written earlier has that time, also after a flush and in a store that is opened again.
func TestWriteAt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "storage")
	st := opened(t, dir)
	old := time.Date(2019, 5, 6, 7, 8, 9, 123456000, time.UTC)
	i, err := st.Notes().WriteAt(t.Context(), "a", []byte("one"), old)
	must(t, err)
	if !i.UpdatedAt.Equal(old) || !i.CreatedAt.Equal(old) {
		t.Error(i)
	}
	older := old.Add(-time.Hour)
	i, err = st.Notes().WriteAt(t.Context(), "a", []byte("two"), older)
	must(t, err)
	if !i.UpdatedAt.Equal(older) || !i.CreatedAt.Equal(old) {
		t.Error(i)
	}
	future := time.Now().Add(time.Hour)
	if i, err = st.Notes().WriteAt(t.Context(), "b", []byte("x"), future); err != nil || !i.UpdatedAt.Before(future) {
		t.Error(i, err)
	}
	must(t, st.Flush(t.Context()))
	must(t, st.Close())
	st = opened(t, dir)
	n, err := st.Notes().Read(t.Context(), "a")
	must(t, err)
	if string(n.Content) != "two" || !n.UpdatedAt.Equal(older) {
		t.Errorf("%q %v", n.Content, n.UpdatedAt)
	}
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

// TestClockAhead: a note that has expired only because the clock was set ahead is not replaced by a write that would
// create it; one that has expired is.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	c := fixture.ClockAt(time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC))
	st := fixture.Open(t, filepath.Join(t.TempDir(), "storage"), c.On(&varve.Options{Clock: c.Now, NoBackground: true}))
	ns, ctx := st.Notes(), t.Context()
	put := func(path string) {
		write(t, st, path, "text\n")
		_, err := ns.SetProperties(ctx, path, varve.NoteProperties{ExpiresAt: c.Now().Add(24 * time.Hour),
			Tags: []string{"a"}})
		must(t, err)
	}
	put("x")
	_, err := st.Put(ctx, varve.Memory{ID: "m", Content: "text", ExpiresAt: c.Now().Add(24 * time.Hour)})
	must(t, err)
	write(t, st, "y", "another\n")
	writes := map[string]func() error{
		"append":    func() error { _, err := ns.Append(ctx, "x", []byte("more\n")); return err },
		"write":     func() error { _, err := ns.Write(ctx, "x", []byte("other\n")); return err },
		"if absent": func() error { _, err := ns.Write(ctx, "x", []byte("other\n"), varve.IfAbsent()); return err },
		"rename":    func() error { _, err := ns.Rename(ctx, "y", "x"); return err },
		"put": func() error {
			_, err := st.Put(ctx, varve.Memory{ID: "m", Content: "other"}, varve.IfAbsent())
			return err
		},
		"transaction": func() error {
			return st.Transact(ctx, func(tx *varve.Tx) error {
				if _, err := tx.Get("m"); !errors.Is(err, varve.ErrNotFound) {
					return err
				}
				_, err := tx.Put(varve.Memory{ID: "m", Content: "other"})
				return err
			})
		},
	}
	c.Jump(10 * 24 * time.Hour)
	for what, f := range writes {
		if err := f(); !errors.Is(err, varve.ErrConflict) || !strings.Contains(err.Error(), "correct the clock") {
			t.Errorf("%s while the clock is ahead: %v", what, err)
		}
	}
	c.Jump(-10 * 24 * time.Hour)
	n, err := ns.Read(ctx, "x")
	must(t, err)
	if string(n.Content) != "text\n" || len(n.Properties.Tags) != 1 || n.Properties.ExpiresAt.IsZero() {
		t.Errorf("%q %+v", n.Content, n.NoteInfo)
	}
	if m, err := st.Get(ctx, "m"); err != nil || m.Content != "text" {
		t.Error(m.Content, err)
	}
	c.Add(25 * time.Hour)
	for _, what := range []string{"append", "put"} {
		if err := writes[what](); err != nil {
			t.Errorf("%s after the expiry: %v", what, err)
		}
	}
	if n, err = ns.Read(ctx, "x"); err != nil || string(n.Content) != "more\n" || !n.Properties.ExpiresAt.IsZero() {
		t.Errorf("%q %+v %v", n.Content, n.NoteInfo, err)
	}
}
