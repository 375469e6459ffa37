package fuzz

import (
	"context"
	"crypto/sha256"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/internal/view/meanings"
)

// meaningOf returns the vector of a text: one that no other text has.
func meaningOf(text string) []float32 {
	v := make([]float32, 8)
	for i, b := range sha256.Sum256([]byte(text)) {
		v[i%len(v)] += float32(int8(b))
	}
	v[0] += 0.5 // never all zero
	return v
}

// options returns the options of a process.
func (w *noter) options(p *sim.Proc) *varve.Options {
	o := options(p.FS, p.Rand(), p.Now, p.Wait)
	if w.embeds {
		o.EmbedModel, o.EmbedBatch = "meanings", 3
		o.Embed = func(_ context.Context, texts []string) (list [][]float32, err error) {
			for _, text := range texts {
				list = append(list, meaningOf(text))
			}
			return list, nil
		}
	}
	return o
}

// meant looks for each section of each note by its meaning, after all have vectors.
func (w *noter) meant(st *varve.Store) {
	if _, err := st.Vectors().EmbedPending(ctx); err != nil {
		w.bad("embedding the sections: %v", err)
		return
	}
	for e, err := range st.Notes().List(ctx, "", 0) {
		if err != nil {
			w.bad("listing the notes: %v", err)
			return
		}
		n, err := st.Notes().Read(ctx, e.Path)
		if err != nil {
			continue // compare reports what is wrong
		}
		list := note.Sections(n.Content)
		for i := range list {
			text := meanings.TextOf(n.Content, &list[i])
			hits, err := st.Search(ctx, varve.Query{Vector: meaningOf(text), Limit: 1})
			if err != nil || len(hits) != 1 || hits[0].Score < 0.9999 || hits[0].Note == nil {
				w.bad("section %d of %s is not found by its meaning: %+v, %v", i, e.Path, hits, err)
				continue
			}
			w.did["found by meaning"]++
		}
	}
}

// TestSimNotesMeant: every section is found by its meaning, after whatever kills and cuts of power.
func TestSimNotesMeant(t *testing.T) {
	simulateNotes(t, 2, 60, func(w *noter) { w.embeds = true })
}

// TestSimNotesMeantEdited is the same beside a user who edits the files.
func TestSimNotesMeantEdited(t *testing.T) {
	simulateNotes(t, 2, 40, func(w *noter) { w.embeds, w.editing = true, true })
}
