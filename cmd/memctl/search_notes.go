package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// foundNote is a place in a note in the list that search prints.
type foundNote struct {
	ID          string       `json:"id"` // the path, as path
	Kind        varve.Kind   `json:"kind"`
	Score       float64      `json:"score"`
	Parts       *scoredBy    `json:"parts,omitempty"`
	Path        string       `json:"path"`
	Version     uint64       `json:"version"`
	Headings    []string     `json:"headings"`
	From        int          `json:"from"`
	To          int          `json:"to"`
	Content     string       `json:"content"` // of these lines
	Created     *time.Time   `json:"created_at,omitempty"`
	Updated     *time.Time   `json:"updated_at,omitempty"`
	Explanation *explanation `json:"explanation,omitempty"`
	Fragment    *fragment    `json:"fragment,omitempty"`
}

// foundNoteOf returns a place in a note in the form for a list.
func foundNoteOf(h *varve.Hit, parts *scoredBy) foundNote {
	n := h.Note
	return foundNote{h.ID, varve.KindNote, h.Score, parts, n.Path, n.Version, append([]string{}, n.Headings...),
		n.From, n.To, n.Text, cli.OrNil(n.CreatedAt), cli.OrNil(n.UpdatedAt), explanationOf(h.Explanation),
		fragmentOf(h.Fragment)}
}

// nameOf returns what is shown as the id of a hit: of a note its path and lines.
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

// trail returns the headings of a place in a note, to be shown before its text.
func trail(n *varve.NoteSection) string {
	if len(n.Headings) == 0 {
		return ""
	}
	return cli.Printable(strings.Join(n.Headings, " > ")) + ": "
}

// withoutHeading returns the fragment of a hit without the line of the heading with which its section begins.
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

// sortedAs returns the memory by which a hit is sorted: of a note, one with its path and times.
func sortedAs(h *varve.Hit) *varve.Memory {
	if n := h.Note; n != nil {
		return &varve.Memory{ID: n.Path, Timestamp: n.UpdatedAt, CreatedAt: n.CreatedAt, UpdatedAt: n.UpdatedAt}
	}
	return &h.Memory
}

// wholeNote reads the section of a hit whose text was not kept in memory. It returns varve.ErrNotFound if the note was
// changed since.
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
