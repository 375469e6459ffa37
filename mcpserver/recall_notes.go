package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
)

// noteHits are the notes that recall has found. They follow the memories of the first page:
//
//	[/memories/plans/zeppelin.md:3-9] the text of these lines, with ↵ for the end of a line
type noteHits struct {
	hits  []noteHit
	lines []string
}

type noteHit struct {
	path, text string
	from, to   int
	cut        bool
	score      float64
}

// Limits of the notes in an answer: the number of characters of a note's text, and the least number of characters that
// have to be left for a note to be added.
const (
	mostNoteChars  = 500
	leastNoteChars = 100
)

// noteHits searches the notes of the view, and subtracts the length of the returned notes from the characters that are
// left of the page. If the group of tools notes is not offered, noteHits returns no notes, but a line that reports
// that notes match too, if any do. For a page after the first, it returns nothing.
func (c *memoryCall) noteHits(ctx context.Context, p *page, q varve.Query, filters []varve.Filter) (*noteHits, error) {
	n := &noteHits{}
	if c.text("cursor") != "" {
		return n, nil
	}
	offered := slices.Contains(c.s.o.Groups, Notes)
	if !offered {
		q.Limit = 1
	}
	hits, err := c.view.Notes(ctx, q, filters...)
	if err != nil && hits == nil {
		return n, err
	}
	if err != nil {
		c.s.o.Logger.Warn("searching notes", "err", err)
	}
	if !offered && len(hits) > 0 {
		n.lines = append(n.lines,
			"notes have matches, too; this server does not show notes → offer the group of tools notes")
		return n, nil
	}
	for i := range hits {
		if p.chars < leastNoteChars {
			break
		}
		s := hits[i].Note
		h := noteHit{path: c.notePath(s.Path), from: s.From, to: s.To, text: s.Text, score: hits[i].Score}
		if f := hits[i].Fragment; f != nil {
			h.text, h.cut = f.Text, f.From > 0 || f.Cut
		}
		text, cut := cut(strings.TrimSpace(h.text), min(p.chars, mostNoteChars))
		h.text, h.cut = text, h.cut || cut
		p.chars -= len(h.text) + len(h.path)
		l := fmt.Sprintf("[%s:%d-%d] %s", oneLine(h.path), h.from, h.to, oneLine(h.text))
		if h.cut {
			l += " …"
		}
		n.hits, n.lines = append(n.hits, h), append(n.lines, l)
	}
	return n, nil
}

func (n *noteHits) write(w *writer) {
	if len(n.hits) == 0 {
		return
	}
	w.member("notes")
	list(w, n.hits, func(w *writer, h *noteHit) {
		w.next()
		w.open('{')
		w.text("path", h.path)
		w.member("from")
		w.b = strconv.AppendInt(w.b, int64(h.from), 10)
		w.member("to")
		w.b = strconv.AppendInt(w.b, int64(h.to), 10)
		w.text("text", h.text)
		if h.cut {
			w.flag("cut", true)
		}
		w.score("score", h.score)
		w.close('}')
	})
}
