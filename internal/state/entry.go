package state

import (
	"fmt"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// LineIn is the line of the index that a document's entry stands for, with version and
// time; of a deletion nothing but that it is one. The record is for who needs more.
func LineIn(e *wal.Entry) (index.Entry, record.View, error) {
	view, err := record.Parse(e.Value)
	if err != nil {
		return index.Entry{}, view, err
	}
	line := index.Entry{Deleted: true}
	if !e.Delete {
		if line, err = index.ParseLine(view.Line); err != nil {
			return index.Entry{}, view, fmt.Errorf("its index line: %w", err)
		}
	}
	line.Version, line.Mtime = e.LSN, e.Time.UnixMicro()
	return line, view, nil
}

// DocumentIn is the document that an entry carries, of at most limit bytes.
func DocumentIn(codec *record.Codec, e *wal.Entry, limit int) ([]byte, record.View, error) {
	view, err := record.Parse(e.Value)
	if err != nil {
		return nil, view, err
	}
	doc, err := codec.Doc(&view, limit)
	return doc, view, err
}

// ModelIn is what an entry of the key 'v' says of the model.
func ModelIn(e *wal.Entry) (index.Model, error) {
	view, err := record.Parse(e.Value)
	if err != nil {
		return index.Model{}, err
	}
	return modelIn(e.LSN, view.Line)
}
