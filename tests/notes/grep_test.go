package notes

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestGrepEdited verifies that Notes.Grep finds the lines of many notes in order, adopts files that were edited, and
// finds the stored content of a file that was damaged, which leaves its size and time unchanged.
func TestGrepEdited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	ns := st.Notes()
	const n = 300
	path := func(i int) string { return fmt.Sprintf("f%d/note%03d.md", i/100, i) }
	for i := range n {
		_, err := ns.Write(t.Context(), path(i), fmt.Appendf(nil, "no match\r\nline of %03d\r\n", i))
		must(t, err)
		if i == n/2 {
			must(t, st.Admin().Compact(t.Context())) // the index has the first half
		}
	}
	grep := func(want func(i int) string) {
		t.Helper()
		i := 0
		for m, err := range ns.Grep(t.Context(), "", regexp.MustCompile(`^line of \w+$`)) {
			must(t, err)
			if m.Path != path(i) || m.Line != 2 || m.Text != want(i) {
				t.Fatalf("match %d: %+v, want %q in %s", i, m, want(i), path(i))
			}
			i++
		}
		if i != n {
			t.Errorf("%d matches, want %d", i, n)
		}
	}
	plain := func(i int) string { return fmt.Sprintf("line of %03d", i) }
	grep(plain)
	must(t, st.Flush(t.Context()))
	grep(plain)

	edit := func(i int, from, to string, keepTime bool) {
		t.Helper()
		name := filepath.Join(dir, "notes", path(i))
		was, err := os.Stat(name)
		must(t, err)
		b, err := os.ReadFile(name)
		must(t, err)
		at := time.Now()
		if keepTime {
			at = was.ModTime()
		}
		must(t, os.WriteFile(name, bytes.Replace(b, []byte(from), []byte(to), 1), 0o600))
		must(t, os.Chtimes(name, at, at))
	}
	edit(7, "007", "seven", false)
	edit(8, "008", "8_8", true)
	edit(250, "250", "many", false)
	want := func(i int) string {
		switch i {
		case 7:
			return "line of seven"
		case 250:
			return "line of many"
		}
		return plain(i)
	}
	grep(want)
	for i, want := range map[int]int{7: 2, 8: 1, 250: 2} {
		versions := 0
		for _, err := range ns.History(t.Context(), path(i)) {
			must(t, err)
			versions++
		}
		if versions != want {
			t.Errorf("%s has %d versions, want %d", path(i), versions, want)
		}
	}
}
