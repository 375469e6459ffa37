package finding

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
)

func opened(t *testing.T, dir string, o *varve.Options) *varve.Store {
	t.Helper()
	if o == nil {
		o = &varve.Options{NoBackground: true}
	}
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func write(t *testing.T, st *varve.Store, path, text string) {
	t.Helper()
	if _, err := st.Notes().Write(t.Context(), path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// find returns the hits of a query as text: of a note path:from-to and the last heading, of a memory its id.
func find(t *testing.T, st *varve.Store, q varve.Query, filters ...varve.Filter) string {
	t.Helper()
	hits, err := st.Search(t.Context(), q, filters...)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, h := range hits {
		name := h.ID
		if n := h.Note; n != nil {
			heading := ""
			if len(n.Headings) > 0 {
				heading = " " + n.Headings[len(n.Headings)-1]
			}
			name = fmt.Sprintf("%s:%d-%d%s", n.Path, n.From, n.To, heading)
			if n.Path != h.ID || h.Memory.ID != "" || n.Version == 0 || n.UpdatedAt.IsZero() {
				t.Errorf("%+v", h)
			}
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

const rome = "# Rome\n\nThe city.\n\n## Trains\n\nFrom Termini to the airport.\n\n## Food\n\nArtichokes, at noon.\n"

// TestNotes: a note is found by its sections, in one ranking with memories, before and behind a flush, by another
// process, and after it was changed, renamed and deleted.
func TestNotes(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, nil)
	if _, err := st.Put(t.Context(), varve.Memory{ID: "m", Content: "we ate artichokes"}); err != nil {
		t.Fatal(err)
	}
	if got := find(t, st, varve.Query{Text: "artichokes"}); got != "m" {
		t.Error(got)
	}
	write(t, st, "travel/rome.md", rome)
	write(t, st, "travel/oslo.md", "# Oslo\n\nFjord.\n")
	flush := func() {
		t.Helper()
		if err := st.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	other := opened(t, dir, nil)
	for _, phase := range []string{"in memory", "in files"} {
		for _, st := range []*varve.Store{st, other} {
			for text, want := range map[string]string{
				"airport":              "travel/rome.md:5-7 Trains",
				"artichokes noon":      "travel/rome.md:9-11 Food, m",
				"rome":                 "travel/rome.md:1-3 Rome",
				"oslo travel":          "travel/oslo.md:1-3 Oslo, travel/rome.md:1-3 Rome",
				"title:trains":         "travel/rome.md:5-7 Trains",
				`"to the airport"`:     "travel/rome.md:5-7 Trains",
				`"airport to the"`:     "",
				"+artichokes -noon":    "m",
				"artichokes -\"noon\"": "m",
				"fjor*":                "travel/oslo.md:1-3 Oslo",
				"nothing":              "",
			} {
				if got := find(t, st, varve.Query{Text: text}); got != want {
					t.Errorf("%s: %q finds %q, want %q", phase, text, got, want)
				}
			}
			q := varve.Query{Text: "artichokes", Kinds: []varve.Kind{varve.KindMemory}}
			if got := find(t, st, q); got != "m" {
				t.Errorf("%s: %q", phase, got)
			}
			if q.Kinds[0] = varve.KindNote; find(t, st, q) != "travel/rome.md:9-11 Food" {
				t.Errorf("%s: %q", phase, find(t, st, q))
			}
		}
		flush()
	}
	if _, err := os.Stat(filepath.Join(dir, "view_index", "sections", "manifest.json")); err != nil {
		t.Error(err)
	}
	check := func(text, want string) {
		t.Helper()
		for range 2 {
			for i, st := range []*varve.Store{st, other} {
				if got := find(t, st, varve.Query{Text: text}); got != want {
					t.Errorf("%d: %q finds %q, want %q", i, text, got, want)
				}
			}
			flush()
		}
	}
	write(t, other, "travel/rome.md", "# Rome\n\n## Boats\n\nOn the Tiber.\n")
	check("airport", "")
	check("tiber", "travel/rome.md:3-5 Boats")
	if _, err := st.Notes().Rename(t.Context(), "travel", "trips"); err != nil {
		t.Fatal(err)
	}
	check("tiber", "trips/rome.md:3-5 Boats")
	check("travel", "")
	if err := os.WriteFile(filepath.Join(dir, "notes", "trips", "oslo.md"), []byte("# Oslo\n\nSkis.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Notes().Read(t.Context(), "trips/oslo.md"); err != nil { // adopts the edit
		t.Fatal(err)
	}
	check("skis fjord", "trips/oslo.md:1-3 Oslo")
	if err := other.Notes().Delete(t.Context(), "trips/rome.md"); err != nil {
		t.Fatal(err)
	}
	check("tiber", "")
	check("artichokes", "m")
	for f := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Error(f)
	}
}

// TestNoteEditedUnseen: an edit that nothing has adopted is met by the search that reads the note.
func TestNoteEditedUnseen(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, nil)
	write(t, st, "a.md", "# One\nzebra\n# Two\nlion\n")
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes", "a.md"), []byte("# One\nx\ny\n# Two\nlion\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := find(t, st, varve.Query{Text: "lion"}); got != "a.md:4-5 Two" {
		t.Error(got)
	}
	if got := find(t, st, varve.Query{Text: "zebra"}); got != "" {
		t.Error(got)
	}
}

// sorted returns a list of hits in the order of their names.
func sorted(hits string) string {
	list := strings.Split(hits, ", ")
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// TestNotesByFilters: filters hold for notes, by what their sidecars say.
func TestNotesByFilters(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, nil)
	if _, err := st.Put(t.Context(), varve.Memory{ID: "a/m", Content: "zebra",
		Metadata: map[string]any{"session_id": "s", "tags": []any{"x"}}}); err != nil {
		t.Fatal(err)
	}
	write(t, st, "a/plain.md", "zebra")
	ns := st.Notes()
	for path, p := range map[string]varve.NoteProperties{
		"b/all.md":  {SessionID: "s", Tags: []string{"x", "y"}, Metadata: map[string]any{"source": "desk"}},
		"b/soon.md": {ExpiresAt: time.Now().Add(time.Hour)},
	} {
		write(t, st, path, "zebra")
		if _, err := ns.SetProperties(t.Context(), path, p); err != nil {
			t.Fatal(err)
		}
	}
	where := func(s string) varve.Filter {
		f, err := varve.Where(s)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	future := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		f    varve.Filter
		want string
	}{
		"prefix":   {varve.WithPrefix("a/"), "a/m, a/plain.md:1-1"},
		"prefix b": {varve.WithPrefix("b/"), "b/all.md:1-1, b/soon.md:1-1"},
		"session":  {varve.InSession("s"), "a/m, b/all.md:1-1"},
		"tag x":    {varve.WithTag("x"), "a/m, b/all.md:1-1"},
		"tag y":    {varve.WithTag("y"), "b/all.md:1-1"},
		"where":    {where("source=desk"), "b/all.md:1-1"},
		"where !":  {where("!source"), "a/m, a/plain.md:1-1, b/soon.md:1-1"},
		"since":    {varve.Since(future), ""},
		"until":    {varve.Until(future), "a/m, a/plain.md:1-1, b/all.md:1-1, b/soon.md:1-1"},
		"updated":  {varve.Updated(future, time.Time{}), ""},
	} {
		for range 2 {
			if got := sorted(find(t, st, varve.Query{Text: "zebra"}, c.f)); got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
			if err := st.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestKindsOfQuery: an unknown kind is refused, and a search that is given up ends.
func TestKindsOfQuery(t *testing.T) {
	st := opened(t, t.TempDir(), nil)
	write(t, st, "a.md", "zebra")
	var field *varve.FieldError
	_, err := st.Search(t.Context(), varve.Query{Text: "zebra", Kinds: []varve.Kind{"notes"}})
	if !errors.As(err, &field) || !errors.Is(err, varve.ErrInvalid) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := st.Search(ctx, varve.Query{Text: "zebra"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
