package finding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/repair"
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
	file := filepath.Join(dir, "notes", "trips", "oslo.md")
	if err := os.WriteFile(file, []byte("# Oslo\n\nSkis.\n"), 0o600); err != nil {
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

// TestNotesByFilters: filters hold for notes, by what their sidecars and their front matter say.
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
	write(t, st, "c/front.md", "---\ntags: [x, green tea]\n---\nzebra\n\n# More\n\nzebra crossing\n")
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
		"tag x":    {varve.WithTag("x"), "a/m, b/all.md:1-1, c/front.md:6-8 More"},
		"tag y":    {varve.WithTag("y"), "b/all.md:1-1"},
		"where":    {where("source=desk"), "b/all.md:1-1"},
		"tag tea":  {varve.WithTag("green tea"), "c/front.md:6-8 More"},
		"where !":  {where("!source"), "a/m, a/plain.md:1-1, b/soon.md:1-1, c/front.md:6-8 More"},
		"since":    {varve.Since(future), ""},
		"until":    {varve.Until(future), "a/m, a/plain.md:1-1, b/all.md:1-1, b/soon.md:1-1, c/front.md:6-8 More"},
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
	if got := find(t, st, varve.Query{Text: "+tag:tea +crossing"}); got != "c/front.md:6-8 More" {
		t.Errorf("a tag of the front matter in a query: %q", got)
	}
	if got := find(t, st, varve.Query{Text: "zebra tag:green"}); !strings.HasPrefix(got, "c/front.md") {
		t.Errorf("by a tag: %q", got)
	}
}

// TestNotesAloneByFilters: filters that a row of a memory answers are answered by the sidecar of a note, also where so
// many sections are that rows are narrowed before they are scored.
func TestNotesAloneByFilters(t *testing.T) {
	st := opened(t, t.TempDir(), nil)
	long := strings.Repeat("# Head\n\nzebra\n\n", 1100)
	write(t, st, "long.md", long)
	write(t, st, "tagged.md", "zebra")
	p := varve.NoteProperties{Tags: []string{"x"}, Metadata: map[string]any{"category": "c", "key": "k"}}
	if _, err := st.Notes().SetProperties(t.Context(), "tagged.md", p); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]varve.Filter{
		"tag": varve.WithTag("x"), "category": varve.InCategory("c"), "key": varve.WithKey("k"),
	} {
		q := varve.Query{Text: "zebra", Kinds: []varve.Kind{varve.KindNote}}
		if got := sorted(find(t, st, q, f)); got != "tagged.md:1-1" {
			t.Errorf("%s: %q", name, got)
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

// TestOddNotes: what odd notes are found by, and with which lines.
func TestOddNotes(t *testing.T) {
	st := opened(t, t.TempDir(), nil)
	for path, text := range map[string]string{
		"empty.md":    "",
		"heads.md":    "# Giraffe\n## Gnu\n### Hippo\n",
		"line.txt":    strings.Repeat("x", 15<<20) + " okapi",
		"crlf.md":     "# One\r\n\r\nkudu\r\n\r\n# Two\r\nimpala\r\n",
		"bom.md":      "\ufeff# Eland\nantelope\n",
		"nul.md":      "bongo\x00",
		"latin1.md":   "bongo\xe9",
		"code.md":     "# Script\n```sh\n# duiker\necho\n```\n",
		"front.md":    "---\n# nyala\ntags: [steenbok]\n---\n# Text\nsitatunga\n",
		"a.b/c d.txt": "lechwe",
		"cut.md":      "# Long\n" + strings.Repeat("springbok runs\n", 300) + "waterbuck\n",
	} {
		write(t, st, path, text)
	}
	for range 2 {
		for text, want := range map[string]string{
			"giraffe": "heads.md:1-1 Giraffe", "hippo": "heads.md:3-3 Hippo", "okapi": "line.txt:1-1",
			"kudu": "crlf.md:1-3 One", "impala": "crlf.md:5-6 Two", "antelope": "bom.md:1-2 Eland",
			"+eland": "bom.md:1-2 Eland", "bongo": "", "+nul": "", "duiker": "code.md:1-5 Script",
			"nyala": "front.md:1-4", "steenbok": "front.md:1-4", "sitatunga": "front.md:5-6 Text", "empty": "",
			"lechwe": "a.b/c d.txt:1-1", "+title:a.b": "a.b/c d.txt:1-1", "+waterbuck": "cut.md:267-302 Long",
		} {
			if got := find(t, st, varve.Query{Text: text}); got != want {
				t.Errorf("%q finds %q, want %q", text, got, want)
			}
		}
		if err := st.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Admin().RebuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := find(t, st, varve.Query{Text: "impala"}); got != "crlf.md:5-6 Two" {
		t.Error(got)
	}
	for f := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Error(f)
	}
}

// TestNotePages: pages of hits continue one another, a note is on one of them, and what is held is bounded.
func TestNotePages(t *testing.T) {
	st := opened(t, t.TempDir(), nil)
	for i := range 25 {
		write(t, st, fmt.Sprintf("n/%02d.md", i), strings.Repeat("# A heading\nzebra\n", 1+i%4))
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", i), Content: "a zebra"}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for at := 0; ; at += 7 {
		hits, err := st.Search(t.Context(), varve.Query{Text: "zebra", Limit: 7, Offset: at, Held: 200, Fragment: 20,
			Explain: true, Recency: 0.1, PerSession: 0})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			if seen[h.ID] {
				t.Errorf("%s is found twice", h.ID)
			}
			seen[h.ID] = true
			if h.Note == nil != (h.ID[0] == 'm') || h.Fragment == nil || !strings.Contains(h.Fragment.Text, "zebra") ||
				h.Explanation == nil || len(h.Explanation.Words) != 1 || h.Explanation.Recency <= 0 {
				t.Errorf("%+v", h)
			}
		}
		if len(hits) < 7 {
			break
		}
	}
	if len(seen) != 50 {
		t.Errorf("%d hits", len(seen))
	}
}

// TestNoNotesNoSections: a store without notes has no files of sections, and is asked for none.
func TestNoNotesNoSections(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, nil)
	if _, err := st.Put(t.Context(), varve.Memory{ID: "m", Content: "zebra"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, kinds := range [][]varve.Kind{nil, {varve.KindNote}, {varve.KindNote, varve.KindMemory}} {
		want := "m"
		if len(kinds) == 1 {
			want = ""
		}
		if got := find(t, st, varve.Query{Text: "zebra", Kinds: kinds}); got != want {
			t.Errorf("%q: %q", kinds, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "view_index", "sections")); !os.IsNotExist(err) {
		t.Errorf("the folder of sections: %v", err)
	}
}

// TestMemoriesAloneAreTheSame: notes change no digit of a search for memories alone.
func TestMemoriesAloneAreTheSame(t *testing.T) {
	var scores [2][]string
	for i := range scores {
		st := opened(t, t.TempDir(), nil)
		for n := range 60 {
			m := varve.Memory{ID: fmt.Sprint("m", n), Content: strings.Repeat("boat ", n%5) + "lake"}
			if _, err := st.Put(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				write(t, st, fmt.Sprintf("%d.md", n), "# Boat\nlake lake\n")
			}
		}
		alone := []varve.Kind{varve.KindMemory}
		hits, err := st.Search(t.Context(), varve.Query{Text: "boat lake", Limit: 100, Kinds: alone})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			scores[i] = append(scores[i], fmt.Sprintf("%s %b", h.ID, h.Score))
		}
	}
	if !slices.Equal(scores[0], scores[1]) || len(scores[0]) != 60 {
		t.Errorf("%q\n%q", scores[0], scores[1])
	}
}

// TestDamagedSections: a search over a damaged file of sections finds what there is; verify tells of the file, and a
// repair makes it again.
func TestDamagedSections(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, nil)
	for i := range 50 {
		write(t, st, fmt.Sprintf("%d.md", i), fmt.Sprintf("# Boat %d\nsails\n# Crew\nsailor%d\n", i, i))
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "view_index", "sections", "*.seg"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := len(b) / 4; i < 3*len(b)/4; i++ {
			b[i] ^= 0x55
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := opened(t, dir, nil)
	if got := find(t, other, varve.Query{Text: "+sailor7"}); got != "7.md:3-4 Crew" {
		t.Error(got)
	}
	told := false
	for f := range other.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		told = told || f.Kind == repair.ViewWrong && f.Path == places.Sections
	}
	if !told {
		t.Error("verify does not tell of the files")
	}
	if err := errors.Join(st.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	plan, err := varve.PlanRepair(t.Context(), dir, nil, varve.VerifyOptions{})
	if err == nil {
		_, err = plan.Apply(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	st = opened(t, dir, nil)
	for f := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Error(f)
	}
	if got := find(t, st, varve.Query{Text: "+sailor7"}); got != "7.md:3-4 Crew" {
		t.Error(got)
	}
}

// TestDamagedWords: damage in the index of words of memories is found there by a search of memories and notes, and the
// sections of notes are not made again.
func TestDamagedWords(t *testing.T) {
	for _, name := range []string{"words", "sections"} {
		many := func(of string) string { // so that a segment has many blocks, each with a checksum
			var b strings.Builder
			for i := range 200 {
				fmt.Fprintf(&b, "%s%dword ", of, i)
			}
			return b.String()
		}
		dir := t.TempDir()
		st := opened(t, dir, nil)
		for i := range 50 {
			write(t, st, fmt.Sprintf("%d.md", i), fmt.Sprintf("# Boat %d\nsails\n# Crew\nsailor%d %s\n", i, i,
				many(fmt.Sprint("n", i))))
			text := fmt.Sprintf("a boat with sailor%d %s", i, many(fmt.Sprint("m", i)))
			m := varve.Memory{ID: fmt.Sprint("m", i), Content: text}
			if _, err := st.Put(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "view_index", name, "*.seg"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		hurt := 0
		for _, file := range files {
			sound, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for at := 64; at < len(sound); at += 1 + len(sound)/50 {
				b := bytes.Clone(sound)
				b[at] ^= 0x55
				if err := os.WriteFile(file, b, 0o600); err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				other := opened(t, dir, &varve.Options{NoBackground: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if got := sorted(find(t, other, varve.Query{Text: "+sailor7"})); got != sorted("7.md:3-4 Crew, m7") {
					t.Error(got)
				}
				for _, folder := range []string{"words", "sections"} {
					told := strings.Contains(log.String(), "view_index/"+folder)
					if told && folder != name {
						t.Errorf("damage of %s: %s", name, &log)
					} else if told {
						hurt++
					}
				}
				if err := other.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(file, sound, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if hurt == 0 {
			t.Errorf("no damage of %s was found by a search", name)
		}
	}
}
