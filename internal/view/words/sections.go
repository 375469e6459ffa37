package words

import (
	"iter"
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/query"
)

// SectionsName is the name of the view of note sections.
const SectionsName = "sections"

// FirstSection is the lowest number of a segment in the view of note sections. The segments of memories have
// lower numbers.
const FirstSection = 1 << 48

// NewSections implements views.Maker: it returns the view of the words in note sections.
func NewSections(eng *engine.Engine) view.View {
	return newWords(eng, sections{}, filingTimes)
}

// sections implements subject for the view of note sections. Each row is a section of a note, and the rows of a note
// form a session. A note without sections has one row without words, which records that the view has processed the
// note.
type sections struct{}

func (sections) name() string                         { return SectionsName }
func (sections) folder() string                       { return places.Sections }
func (sections) first() uint64                        { return FirstSection }
func (sections) cut() int                             { return note.CutVersion }
func (sections) kind(eng *engine.Engine) *engine.Kind { return eng.Kinds().Notes }
func (sections) hasRows(id string) bool               { return !note.IsSidecar(id) }

func (sections) rows(_ *Words, path string, doc []byte, line *index.Entry, lsn uint64) []*words.Doc {
	list, tags := note.Sections(doc), note.Tags(doc)
	docs := make([]*words.Doc, max(1, len(list)))
	for i := range docs {
		d := unread(note.SectionID(path, i), line, lsn)
		if d.Session, d.Time = path, line.UpdatedAt.UnixMicro(); i < len(list) {
			d.Texts = TextsOf(path, doc, &list[i], tags)
		}
		docs[i] = d
	}
	return docs
}

// TextsOf returns the texts of a section that are searched. tags are those of the note's front matter (note.Tags).
func TextsOf(path string, doc []byte, s *note.Section, tags []string) []query.Text {
	texts := []query.Text{{Field: query.Content, Text: string(doc[s.Start:s.End])},
		{Field: query.Title, Text: s.Title(path)}}
	for _, tag := range tags {
		texts = append(texts, query.Text{Field: query.Tags, Text: tag})
	}
	return texts
}

func (sections) old(set *words.Set, paths []string) (lsns []uint64, rowIDs [][]string, err error) {
	lsns, rowIDs = make([]uint64, len(paths)), make([][]string, len(paths))
	for i, path := range paths {
		at, ids, err := set.InSession(path)
		if err == nil && len(at) > 0 {
			rowIDs[i] = ids
			lsns[i], err = set.LSN(at[0])
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return lsns, rowIDs, nil
}

func (sections) find(set *words.Set, path string) (words.Ref, int, error) {
	at, _, err := set.InSession(path)
	if err != nil || len(at) == 0 {
		return words.Ref{}, 0, err
	}
	return at[0], len(at), nil
}

func (sections) ids(set *index.Set) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for e, err := range set.Range(index.Notes, index.Span{}) {
			if err == nil && note.IsSidecar(string(e.Key)) {
				continue
			}
			if !yield(string(e.Key), err) {
				return
			}
		}
	}
}

// Absent reports whether the store has never had a document of the kind that this view is about. In that case the view
// has no files, and flushes need not look for them.
func (w *Words) Absent() bool { return !w.eng.HasHad(w.of.kind(w.eng)) }

// IsOfSections reports whether the segment number part contains sections of notes, and not memories.
func IsOfSections(part uint64) bool { return part >= FirstSection }

// PathOf returns the path of the note that contains a section, given the reference and the id of the section's
// row. ok is false if the row is that of a memory.
func PathOf(ref words.Ref, id string) (path string, ok bool) {
	if !IsOfSections(ref.Part) {
		return "", false
	}
	path, _, ok = strings.Cut(id, "\x00")
	return path, ok
}
