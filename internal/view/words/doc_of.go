package words

import (
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/order"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

// DocOf is how a memory is found: its content, the texts of its metadata that have a field, and the
// words of its time.
func DocOf(m *memstore.Memory, lsn uint64) *words.Doc {
	d := &words.Doc{ID: m.ID, LSN: lsn, Session: m.Session(), Time: m.Timestamp.UnixMicro()}
	add := func(f query.Field, text string) {
		if text != "" {
			d.Texts = append(d.Texts, query.Text{Field: f, Text: text})
		}
	}
	add(query.Content, m.Content)
	for _, name := range [...]string{"speaker", "author", "name", "caption", "title", "tags", "category", "key"} {
		f, _ := query.FieldNamed(name)
		add(f, textOf(m.Metadata[name]))
	}
	if !m.Timestamp.IsZero() {
		t := m.Timestamp.UTC()
		add(query.Date, t.Format("2006 January 2 Monday"))
	}
	return d
}

// textOf is what a member of the metadata says in words: a text, or a list of texts.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []string:
		return strings.Join(v, "\n")
	case []any:
		var texts []string
		for _, x := range v {
			if s, ok := x.(string); ok {
				texts = append(texts, s)
			}
		}
		return strings.Join(texts, "\n")
	}
	return ""
}

// unread stands for a memory whose document cannot be read: it is there, and has no words.
func unread(id string, line *index.Entry, lsn uint64) *words.Doc {
	return &words.Doc{ID: id, LSN: lsn, Session: strings.Clone(line.SessionID), Time: words.NoTime, Line: lineOf(line)}
}

// lineOf is what the index knows of a memory, as orders have it.
func lineOf(e *index.Entry) order.Line {
	l := order.Line{Created: e.CreatedAt.UnixMicro(), Updated: e.UpdatedAt.UnixMicro(), Expires: order.Never, Score: e.Score, Size: uint32(e.Size)}
	if !e.ExpiresAt.IsZero() {
		l.Expires = e.ExpiresAt.UnixMicro()
	}
	return l
}
