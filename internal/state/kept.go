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

// KeptIn is the line of the version of which an entry is a copy, with that version's own number
// and time. The record is for callers that need the document.
func KeptIn(e *wal.Entry) (index.Entry, record.View, error) {
	view, err := Read(e)
	if err != nil {
		return index.Entry{}, view, err
	}
	line, err := keptLine(e, &view)
	if err != nil {
		return index.Entry{}, view, invalid(e, fmt.Errorf("its kept version: %w", err))
	}
	line.Version = view.Previous
	return line, view, nil
}

func keptLine(e *wal.Entry, view *record.View) (index.Entry, error) {
	if e.Key[0] != record.Kept || view.Previous == 0 || view.Created || view.Dims() != 0 {
		return index.Entry{}, errors.New("it is a copy of no version")
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
		return line, fmt.Errorf("it was committed at %d microseconds since 1970", micros)
	}
	// The vector stands in the document alone: what the line says of it is not of this entry.
	own, bare := line, *view
	own.Dimension, own.VectorID, bare.Line = index.UnknownDimension, 0, inner
	if err := checkLine(&at, &bare, &own); err != nil {
		return line, err
	}
	line.Mtime, line.By = micros, by
	return line, nil
}

// KeptDocument is KeptIn with the document, of at most limit bytes, which is the one that the line
// names.
func KeptDocument(codec *record.Codec, e *wal.Entry, limit int) (index.Entry, []byte, error) {
	line, view, err := KeptIn(e)
	if err != nil {
		return line, nil, err
	}
	doc, err := codec.Doc(&view, limit)
	if err == nil && sha256.Sum256(doc) != line.ContentHash {
		err = errors.New("its document is not the one that its index line names")
	}
	if err != nil {
		err = invalid(e, err)
	}
	return line, doc, err
}
