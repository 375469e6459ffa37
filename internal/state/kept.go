package state

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// KeptIn reads a log entry that is a copy of an older version of a document. It returns the index line of that
// version, with its position and time, and the record, for callers that need the document.
func KeptIn(e *wal.Entry) (index.Entry, record.View, error) {
	view, err := Read(e)
	if err != nil {
		return index.Entry{}, view, err
	}
	line, err := keptLine(e, &view)
	if err != nil {
		return index.Entry{}, view, invalid(e, fmt.Errorf("the entry with the copy of a version is invalid: %w", err))
	}
	line.Version = view.Previous
	return line, view, nil
}

func keptLine(e *wal.Entry, view *record.View) (index.Entry, error) {
	if e.Key[0] != record.Kept || view.Previous == 0 || view.Created || view.Dims() != 0 {
		return index.Entry{}, errors.New("the log entry does not name the version of which it is a copy")
	}
	micros, by, inner, err := record.SplitKept(view.Line)
	if err != nil {
		return index.Entry{}, err
	}
	line, err := index.ParseLine(inner)
	if err != nil {
		return line, err
	}
	at := wal.Entry{LSN: e.LSN, Key: e.Key[1:], Time: time.UnixMicro(micros)}
	if !Dated(&at) {
		return line, fmt.Errorf("impossible commit time: %d microseconds since 1970", micros)
	}
	// Only the document contains the vector: the fields of the line that describe it are not about this entry.
	own, bare := line, *view
	own.Dimension, own.VectorID, bare.Line = index.UnknownDimension, 0, inner
	if err := checkLine(&at, &bare, &own); err != nil {
		return line, err
	}
	line.Mtime, line.By = micros, by
	return line, nil
}

// KeptDocument is like KeptIn, but returns the document, of at most limit bytes. It verifies that this is the
// document that the index line names.
func KeptDocument(codec *record.Codec, e *wal.Entry, limit int) (index.Entry, []byte, error) {
	line, view, err := KeptIn(e)
	if err != nil {
		return line, nil, err
	}
	doc, err := codec.Doc(&view, limit)
	if err == nil && sha256.Sum256(doc) != line.ContentHash {
		err = errors.New("the document does not match the hash in the index line")
	}
	if err != nil {
		err = invalid(e, err)
	}
	return line, doc, err
}
