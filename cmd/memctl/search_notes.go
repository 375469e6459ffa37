package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// foundNote is a hit of search that is a section of a note, in the JSON output.
type foundNote struct {
	ID          string       `json:"id"` // the path of the note, the same as Path
	Kind        varve.Kind   `json:"kind"`
	Score       float64      `json:"score"`
	Parts       *scoredBy    `json:"parts,omitempty"`
	Path        string       `json:"path"`
	Version     uint64       `json:"version"`
	Headings    []string     `json:"headings"`
	From        int          `json:"from"`
	To          int          `json:"to"`
	Content     string       `json:"content"` // the text of these lines
	Created     *time.Time   `json:"created_at,omitempty"`
	Updated     *time.Time   `json:"updated_at,omitempty"`
	Explanation *explanation `json:"explanation,omitempty"`
	Fragment    *fragment    `json:"fragment,omitempty"`
}

// foundNoteOf returns a hit that is a section of a note in the form for the JSON output.
func foundNoteOf(h *varve.Hit, parts *scoredBy) foundNote {
	n := h.Note
	return foundNote{h.ID, varve.KindNote, h.Score, parts, n.Path, n.Version, append([]string{}, n.Headings...),
		n.From, n.To, n.Text, cli.OrNil(n.CreatedAt), cli.OrNil(n.UpdatedAt), explanationOf(h.Explanation),
		fragmentOf(h.Fragment)}
}

// nameOf returns the text that is shown as the id of a hit. For a section of a note this is the path of the note with
// the line numbers.
func nameOf(h *varve.Hit) string {
	switch n := h.Note; {
	case n == nil:
		return cli.PrintableID(h.ID)
	case n.From == n.To:
		return fmt.Sprintf("%s:%d", cli.PrintableID(n.Path), n.From)
	default:
		return fmt.Sprintf("%s:%d-%d", cli.PrintableID(n.Path), n.From, n.To)
	}
}

// trail returns the headings above a section of a note, to be shown before its text.
func trail(n *varve.NoteSection) string {
	if len(n.Headings) == 0 {
		return ""
	}
	return cli.Printable(strings.Join(n.Headings, " > ")) + ": "
}

// withoutHeading returns the fragment of a hit without the heading line with which the section of the note
// begins.
func withoutHeading(h *varve.Hit) *varve.Fragment {
	f := h.Fragment
	if h.Note == nil || f == nil || f.From > 0 || !strings.HasPrefix(strings.TrimLeft(f.Text, " "), "#") ||
		len(h.Note.Headings) == 0 {
		return f
	}
	i := strings.IndexByte(f.Text, '\n')
	if i < 0 {
		return f
	}
	rest := varve.Fragment{Text: f.Text[i+1:], Cut: f.Cut}
	for _, m := range f.Marks {
		if m[0] > i {
			rest.Marks = append(rest.Marks, [2]int{m[0] - i - 1, m[1] - i - 1})
		}
	}
	return &rest
}

// sortedAs returns a memory whose fields determine the place of a hit in the sorted list. For a note this is a
// temporary Memory with the path and the times of the note.
func sortedAs(h *varve.Hit) *varve.Memory {
	if n := h.Note; n != nil {
		return &varve.Memory{ID: n.Path, Timestamp: n.UpdatedAt, CreatedAt: n.CreatedAt, UpdatedAt: n.UpdatedAt}
	}
	return &h.Memory
}

// wholeNote reads the section of a note whose text was dropped to save memory (see heldMost). It returns
// varve.ErrNotFound if the note was changed after the search.
func (p *searched) wholeNote(ctx context.Context, h *varve.Hit) error {
	n, err := p.st.Notes().Read(ctx, h.Note.Path)
	if err != nil {
		return err
	}
	if n.Version != h.Note.Version {
		return varve.ErrNotFound
	}
	line := 0
	var text strings.Builder
	for s := range strings.Lines(string(n.Content)) {
		if line++; line >= h.Note.From && line <= h.Note.To {
			text.WriteString(s)
		}
	}
	h.Note.Text = text.String()
	return nil
}
