package words

import (
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/text"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/order"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

// DocOf returns a memory in the form in which the word index stores it: its content, the texts of its metadata
// that belong to a field, and the words of its time.
func DocOf(m *memstore.Memory, lsn uint64, from *query.Sources) *words.Doc {
	d := &words.Doc{ID: m.ID, LSN: lsn, Session: m.Session(), Time: m.Timestamp.UnixMicro()}
	add := func(f query.Field, s string) {
		if s != "" {
			d.Texts = append(d.Texts, query.Text{Field: f, Text: s})
		}
	}
	add(query.Content, m.Content)
	from.Each(func(f query.Field, name string) { add(f, strings.Join(text.Values(m.Metadata[name]), "\n")) })
	if !m.Timestamp.IsZero() {
		t := m.Timestamp.UTC()
		add(query.Date, t.Format("2006 January 2 Monday"))
	}
	return d
}

// unread returns the form in which the word index stores a memory that cannot be read: it has an id but no
// words.
func unread(id string, line *index.Entry, lsn uint64) *words.Doc {
	return &words.Doc{ID: id, LSN: lsn, Session: strings.Clone(line.SessionID), Time: words.NoTime, Line: lineOf(line)}
}

// lineOf returns the metadata of a memory that sorted listings need, taken from the memory's index line.
func lineOf(e *index.Entry) order.Line {
	l := order.Line{Created: e.CreatedAt.UnixMicro(), Updated: e.UpdatedAt.UnixMicro(), Expires: order.Never,
		Score: e.Score, Size: uint32(e.Size)}
	if !e.ExpiresAt.IsZero() {
		l.Expires = e.ExpiresAt.UnixMicro()
	}
	return l
}
