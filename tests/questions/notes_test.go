package questions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// TestQuestionsOfNotes asks the same questions of notes: ten memories are the sections of one, and a hit counts if its
// section is the one with the answer. The place is found about as often as a memory is.
func TestQuestionsOfNotes(t *testing.T) {
	t.Parallel()
	memories, list := Load(1)
	st := filled(t, nil)
	of := map[string]string{} // the id of the memory, by the section
	var text strings.Builder
	for i, m := range memories {
		place := fmt.Sprintf("notes/%03d.md:%d", i/10, 1+strings.Count(text.String(), "\n"))
		of[place] = m.ID
		fmt.Fprintf(&text, "## %s\n\n%s\n\n", strings.Repeat("-", 1+i%10), m.Content)
		if i%10 == 9 || i == len(memories)-1 {
			if _, err := st.Notes().Write(t.Context(), fmt.Sprintf("notes/%03d.md", i/10), []byte(text.String())); err != nil {
				t.Fatal(err)
			}
			text.Reset()
		}
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := Ask(list, func(text string) (ids []string, err error) {
		hits, err := st.Search(t.Context(), varve.Query{Text: text, Limit: Top})
		for _, h := range hits {
			ids = append(ids, of[fmt.Sprintf("%s:%d", h.Note.Path, h.Note.From)])
		}
		return ids, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range append(slices.Clone(Kinds), "") {
		f := found[kind]
		t.Logf("kind %q: %d of %d, MRR %.3f", kind, f.Found, f.Asked, f.MRR)
	}
	if f := found[""]; f.Found < 165 || f.MRR < 0.76 {
		t.Errorf("%d are found, MRR %.3f; the floor is 165, 0.76; not found: %q", f.Found, f.MRR, f.Missed)
	}
}
