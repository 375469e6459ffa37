package search

import (
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

// asked is the parsed query of a search, as it was executed on one set of words: those of the memories, those of the
// notes, or both together.
type asked struct {
	query    *query.Query
	analyzer *analyzer.Analyzer
	from     *query.Sources
	cut      cutNotes // notes whose sections were read
}

// cutNote is a version of a note, divided into its sections. A search for a phrase checks the sections of a note one
// after the other, and a note can have thousands, so the divided note is kept.
type cutNote struct {
	path     string
	lsn      uint64
	doc      []byte
	sections []note.Section
	tags     []string
}

// cutNotes caches divided notes by path. A query with a phrase checks sections in the order of their scores, so
// sections of different notes alternate.
type cutNotes struct {
	notes map[string]cutNote
	bytes int
}

// cutMost is the maximum number of bytes of the notes in a cutNotes. The newest note does not count.
const cutMost = 16 << 20

func (c *cutNotes) add(n cutNote) {
	if c.bytes += len(n.doc); c.notes == nil || c.bytes > cutMost {
		c.notes, c.bytes = map[string]cutNote{}, len(n.doc)
	}
	c.notes[n.path] = n
}

// tell calls q.Note for each remark about the way in which the query was understood. It skips the remarks in told, and
// adds the new ones to told.
func (a *asked) tell(q *Query, told map[string]bool) {
	if a.query == nil || q.Note == nil {
		return
	}
	for _, note := range a.query.Notes {
		if !told[note] {
			told[note] = true
			q.Note(note)
		}
	}
}

// explained returns the explanation of the score of a hit; texts returns the texts of the document.
func (a *asked) explained(h *found, texts func() []query.Text) *memstore.Explanation {
	e := &memstore.Explanation{Own: h.parts.Own, Session: h.parts.Session, Similarity: h.similarity, Recency: h.recency,
		Importance: h.importance}
	if a.query == nil || len(h.shares) == 0 {
		return e
	}
	fields := make([][]string, len(a.query.All))
	for _, t := range texts() {
		seen := map[int]bool{}
		for _, m := range a.query.Marks(t.Field, t.Text[:min(len(t.Text), mostSearched)], a.analyzer) {
			if name := t.Field.String(); !seen[m.Word] &&
				(len(fields[m.Word]) == 0 || fields[m.Word][len(fields[m.Word])-1] != name) {
				fields[m.Word] = append(fields[m.Word], name)
			}
			seen[m.Word] = true
		}
	}
	for _, s := range h.shares {
		word := analyzer.Shown(a.query.All[s.Word].Term)
		e.Words = append(e.Words, memstore.WordShare{Word: word, Score: s.Score, Near: s.Near, Fields: fields[s.Word]})
	}
	return e
}

// keep stores in a hit the scores that the search by words has computed.
func (h *found) keep(hit *words.Hit, shares []words.Share) { h.parts, h.shares = hit.Parts, shares }
