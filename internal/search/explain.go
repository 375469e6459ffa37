package search

import (
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

// asked is a parsed query, as it was executed on one set of rows of the word index.
type asked struct {
	query    *query.Query
	analyzer *analyzer.Analyzer
	from     *query.Sources
	cut      cutNotes // notes whose sections were read
}

// cutNote is a version of a note, divided into its sections. It is kept because a search for a phrase checks one
// section after another, and a note can have thousands.
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

// cutMost is the maximum number of bytes of notes in a cutNotes, besides the newest note.
const cutMost = 16 << 20

func (c *cutNotes) add(n cutNote) {
	if c.bytes += len(n.doc); c.notes == nil || c.bytes > cutMost {
		c.notes, c.bytes = map[string]cutNote{}, len(n.doc)
	}
	c.notes[n.path] = n
}

// tell calls q.Note for each remark on how the query was understood, except those in told.
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

// keep stores in the hit the data that the search by words has computed for it.
func (h *found) keep(hit *words.Hit, shares []words.Share) { h.parts, h.shares = hit.Parts, shares }
