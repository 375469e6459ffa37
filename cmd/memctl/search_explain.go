package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// tableFragment is the maximum number of bytes of a text in the table of search. The table cuts it again to the width
// of the screen.
const tableFragment = 400

// explanation is the explanation of a hit in the JSON output of search.
type explanation struct {
	Own        float64     `json:"own"`
	Session    float64     `json:"session"`
	Similarity float64     `json:"similarity"`
	Words      []wordShare `json:"words"`
	Recency    float64     `json:"recency"`
	Importance float64     `json:"importance"`
}

type wordShare struct {
	Word   string   `json:"word"`
	Score  float64  `json:"score"`
	Near   float64  `json:"near"`
	Fields []string `json:"fields"`
}

func explanationOf(e *varve.Explanation) *explanation {
	if e == nil {
		return nil
	}
	out := &explanation{e.Own, e.Session, e.Similarity, []wordShare{}, e.Recency, e.Importance}
	for _, w := range e.Words {
		out.Words = append(out.Words, wordShare{w.Word, w.Score, w.Near, append([]string{}, w.Fields...)})
	}
	return out
}

// fragment is the fragment of a hit in the JSON output of search.
type fragment struct {
	Text  string   `json:"text"`
	From  int      `json:"from"`
	Cut   bool     `json:"cut"`
	Marks [][2]int `json:"marks"`
}

func fragmentOf(f *varve.Fragment) *fragment {
	if f == nil {
		return nil
	}
	return &fragment{f.Text, f.From, f.Cut, f.Marks}
}

// textOf returns the text that is shown for a hit: the whole text, or the fragment if one was requested.
func textOf(h *varve.Hit) string {
	f := withoutHeading(h)
	switch {
	case h.Note != nil && f != nil:
		return trail(h.Note) + piece(cli.Printable(f.Text), f.From > 0, f.Cut)
	case h.Note != nil:
		return trail(h.Note) + cli.Printable(withoutHeading(&varve.Hit{Note: h.Note,
			Fragment: &varve.Fragment{Text: h.Note.Text}}).Text)
	case f == nil:
		return cli.Printable(h.Memory.Content)
	}
	return piece(cli.Printable(f.Text), f.From > 0, f.Cut)
}

// piece returns a part of a text with an ellipsis at its beginning if cutBefore is true, and an ellipsis at its end if
// cutBehind is true.
func piece(text string, cutBefore, cutBehind bool) string {
	if cutBefore {
		text = "… " + text
	}
	if cutBehind {
		text += " …"
	}
	return text
}

// marked returns the fragment of a hit as a cell of the table, with the search words in bold.
func marked(f *varve.Fragment) string {
	var out strings.Builder
	// Printable removes the spaces at the ends of a part: put them back beside a word.
	add := func(s string) {
		part := cli.Printable(s)
		if part == "" && s != "" || part != "" && strings.TrimLeftFunc(s, unicode.IsSpace) != s {
			out.WriteString(" ")
		}
		if out.WriteString(part); part != "" && strings.TrimRightFunc(s, unicode.IsSpace) != s {
			out.WriteString(" ")
		}
	}
	at := beginOf(f)
	from := f.From + at
	for _, m := range f.Marks {
		add(f.Text[at:m[0]])
		out.WriteString(cli.MarkOn)
		add(f.Text[m[0]:m[1]])
		out.WriteString(cli.MarkOff)
		at = m[1]
	}
	add(f.Text[at:])
	return piece(strings.TrimSpace(out.String()), from > 0, f.Cut)
}

// cellLead is the number of bytes that a cell shows before the first search word, unless that word is near the
// beginning anyway.
const (
	cellLead = 30
	cellNear = 45
)

// beginOf returns the offset in the fragment at which the cell begins, chosen so that a narrow screen does not
// cut off the search words.
func beginOf(f *varve.Fragment) int {
	if len(f.Marks) == 0 || f.Marks[0][0] <= cellNear {
		return 0
	}
	first := f.Marks[0][0]
	lead := f.Text[first-cellLead : first]
	if space := strings.IndexFunc(lead, unicode.IsSpace); space >= 0 {
		return first - cellLead + space
	}
	return first
}

// scoreText returns the explanation of a hit's score on one line.
func scoreText(h *varve.Hit) string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
	e := h.Explanation
	var words []string
	for _, w := range e.Words {
		where := append([]string{}, w.Fields...)
		if w.Near > 0 {
			where = append(where, fmt.Sprintf("neighbours %.0f%%", 100*w.Near))
		}
		words = append(words, fmt.Sprintf("%s %s (%s)", cli.Printable(w.Word), number(w.Score), strings.Join(where, ", ")))
	}
	var parts []string
	if len(words) > 0 {
		parts = append(parts, strings.Join(words, " + "))
	}
	if e.Session > 0 {
		parts = append(parts, "session "+number(e.Session))
	}
	text := strings.Join(parts, " + ")
	if e.Similarity != 0 {
		if text != "" {
			text = fmt.Sprintf("words %s: %s; meaning %s: ", number(h.Words), text, number(h.Vector))
		}
		text += "similarity " + number(e.Similarity)
	}
	if e.Recency > 0 {
		text += " + recency " + number(e.Recency)
	}
	if e.Importance > 0 {
		text += " + importance " + number(e.Importance)
	}
	return text
}
