package state

import (
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/writer"
)

// The contents of an entry are untrusted input: none of the checksums is keyed, so a log that came with a folder may
// contain anything. An invalid entry is treated as if it were not in the log: State does not apply it, and a walk along
// a chain of versions gets an error there. Whether an entry is valid depends only on its own bytes, so all processes,
// and every replay, agree on it.

// ErrEntry is matched by an error about a log entry whose content is invalid. Such an error also matches
// errs.ErrCorrupt. An error about an entry of a newer program does not match ErrEntry.
var ErrEntry = errors.New("not a valid entry of the log")

// Invalid returns an error that reports the log entry e as invalid because of err.
func Invalid(e *wal.Entry, err error) error { return invalid(e, err) }

func invalid(e *wal.Entry, err error) error {
	return &errs.CorruptionError{Path: "wal", LSN: e.LSN, Offset: -1, Err: fmt.Errorf("%w: %w", ErrEntry, err)}
}

// mostTime and leastTime are the bounds of the times that log entries can have: the starts of the years 2400 and 1.
// The log assigns no time after 2300 (package wal): file systems support no later one.
var mostTime, leastTime = time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)

// Dated reports whether a store can have assigned the time that a log entry has.
func Dated(e *wal.Entry) bool { return !e.Time.Before(leastTime) && !e.Time.After(mostTime) }

// Read returns the record in a log entry. It verifies everything except the index line and the document. It also
// verifies that the entry's predecessor is at a smaller position than the entry. No other function reads the
// predecessor, so every walk from entry to predecessor ends.
func Read(e *wal.Entry) (record.View, error) {
	view, err := record.Parse(e.Value)
	if errors.Is(err, errs.ErrNewerFormat) {
		return record.View{}, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	if err == nil {
		err = checkKey(e)
	}
	switch {
	case err != nil:
	case view.Previous >= e.LSN:
		err = fmt.Errorf("the entry names version %d as its predecessor, but this version is not older than the entry",
			view.Previous)
	case !Dated(e):
		err = fmt.Errorf("impossible commit time: %d microseconds since 1970", e.Time.UnixMicro())
	}
	if err != nil {
		return record.View{}, invalid(e, err)
	}
	return view, nil
}

// isOf reports whether the key of a log entry is the key of a document of kind k. The entry may be invalid.
func isOf(e *wal.Entry, k *kind.Kind) bool { return len(e.Key) > 0 && e.Key[0] == k.Letter }

// checkKey returns an error unless the key of a log entry is valid, and the entry's kind of record belongs to
// that key. A key may be that of a document, a scope of working memory or another thing of the store.
func checkKey(e *wal.Entry) error {
	want := uint8(record.KindPut)
	if e.Delete {
		want = record.KindDelete
	}
	if len(e.Key) > 0 {
		var err error
		switch letter, k := e.Key[0], kind.Lettered(e.Key[0]); {
		case k != nil:
			err = checkID(k, e.Key[1:])
		case letter == record.Working:
			_, err = working.ParseScope(e.Key[1:])
		case letter == record.Kept:
			if want = record.KindKept; e.Delete || len(e.Key) < 3 || kind.Lettered(e.Key[1]) == nil {
				err = fmt.Errorf("invalid key %s", human.Quote(e.Key))
			} else {
				err = checkID(kind.Lettered(e.Key[1]), e.Key[2:])
			}
		case letter == record.Writer:
			if want = record.KindWriter; e.Key != WriterKey || e.Delete {
				err = fmt.Errorf("invalid key %s", human.Quote(e.Key))
			}
		case letter == record.Purge:
			if want = record.KindPurge; e.Key != PurgeKey || e.Delete {
				err = fmt.Errorf("invalid key %s", human.Quote(e.Key))
			}
		case letter == record.Model:
			if want = record.KindModel; e.Key != ModelKey || e.Delete {
				err = fmt.Errorf("invalid key %s", human.Quote(e.Key))
			}
		default:
			err = fmt.Errorf("invalid key %s", human.Quote(e.Key))
		}
		if err != nil {
			return err
		}
	} else {
		return errors.New("the entry has no key")
	}
	if e.Kind != want {
		return fmt.Errorf("an entry of the key %s must not have the kind %d", human.Quote(e.Key), e.Kind)
	}
	return nil
}

// checkID returns an error for an id that documents of a kind cannot have.
func checkID(k *kind.Kind, id string) error {
	if err := jsondoc.CheckID("key", id, 0); err != nil {
		return err
	}
	return k.CheckID(id)
}

// Check returns the record in a log entry. The error is not nil if the entry is invalid, so that State does not apply
// it. Check verifies what Read verifies, and the index line; the code that reads the document verifies the document.
func Check(e *wal.Entry) (record.View, error) {
	view, err := Read(e)
	if err != nil || e.Delete {
		return view, err
	}
	k := kind.Lettered(e.Key[0])
	switch {
	case k != nil:
		vectors := e.LSN
		if view.Created { // it cannot have an older vector
			vectors = 0
		}
		if k.QuickLine != nil && k.QuickLine(view.Line, e.Key[1:], view.Size(), view.Dims(), vectors) && view.Finite() {
			return view, nil
		}
		_, view, err = LineIn(e)
	case e.Key[0] == record.Kept:
		_, view, err = KeptIn(e)
	case e.Key[0] == record.Model:
		_, err = modelIn(e.LSN, view.Line)
		if err != nil {
			err = invalid(e, err)
		}
	case e.Key[0] == record.Writer:
		if _, err = writer.Parse(view.Line); err != nil {
			err = invalid(e, err)
		}
	case e.Key[0] == record.Purge:
		if _, err = purgefile.Parse(view.Line); err != nil {
			err = invalid(e, err)
		}
	}
	return view, err
}

// LineIn returns the index line in a document's log entry, with the version and the time. For a deletion it returns a
// line that has only the Deleted flag, the version and the time. It also returns the whole record of the entry.
func LineIn(e *wal.Entry) (index.Entry, record.View, error) {
	view, err := Read(e)
	if err != nil {
		return index.Entry{}, view, err
	}
	line := index.Entry{Deleted: true}
	if !e.Delete {
		if line, err = index.ParseLine(view.Line); err == nil {
			err = checkLine(e, &view, &line)
		}
		if err != nil {
			return index.Entry{}, view, invalid(e, fmt.Errorf("the index line in the entry is invalid: %w", err))
		}
	}
	if line.Version, line.By = e.LSN, e.Writer; line.Mtime == 0 {
		line.Mtime = e.Time.UnixMicro()
	}
	return line, view, nil
}

// foreignVectors is the lowest FAISS id that is not a log position: ids from there on come from imports, or from
// index.StrayVector.
const foreignVectors = 1 << 48

// checkLine returns an error unless line is a valid index line for the log entry e, which contains it. The line must
// have the file, the size and the dimension of the document in the entry, and no field that only lines in an index file
// have. Its vector ID must be one that the document can have, and the document's vector must be finite.
func checkLine(e *wal.Entry, view *record.View, line *index.Entry) error {
	k := kind.Of(e.Key)
	if k == nil {
		return fmt.Errorf("%s is not the key of a document", human.Quote(e.Key))
	}
	if k.CheckLine != nil {
		if err := k.CheckLine(view.Line, line); err != nil {
			return err
		}
	}
	if !view.Finite() {
		return errors.New("the vector contains NaN or infinity")
	}
	switch {
	case line.Deleted || line.Version != 0 || line.Mtime != 0 && !k.FileWins || line.By != 0:
		return errors.New("the index line has fields that only lines in an index file have")
	case !k.IsFile(line.Filepath, e.Key[1:]):
		return fmt.Errorf("the index line names the file %s, not %s", human.Quote(line.Filepath), k.File(e.Key[1:]))
	case line.Size != int64(view.Size()):
		return fmt.Errorf("the index line names a document of %d bytes, not %d", line.Size, view.Size())
	case line.Dimension != index.UnknownDimension && line.Dimension != view.Dims():
		return fmt.Errorf("the index line names a vector of %d dimensions, not %d", line.Dimension, view.Dims())
	case line.VectorID < 0 || line.VectorID < foreignVectors && (uint64(line.VectorID) > e.LSN ||
		line.VectorID != 0 && view.Created):
		return fmt.Errorf("the index line names vector %d, which the document cannot have", line.VectorID)
	}
	return nil
}

// DocumentIn returns the document in a log entry, of at most limit bytes.
func DocumentIn(codec *record.Codec, e *wal.Entry, limit int) ([]byte, record.View, error) {
	view, err := Read(e)
	if err != nil {
		return nil, view, err
	}
	doc, err := codec.Doc(&view, limit)
	if err != nil {
		err = invalid(e, err)
	}
	return doc, view, err
}

// ModelIn returns the embedding model that a log entry of the key 'v' sets.
func ModelIn(e *wal.Entry) (index.Model, error) {
	view, err := Read(e)
	if err != nil {
		return index.Model{}, err
	}
	m, err := modelIn(e.LSN, view.Line)
	if err != nil {
		err = invalid(e, err)
	}
	return m, err
}
