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

// What an entry says is input: none of the checksums over it is keyed, so a log that
// came with a folder may say anything. An entry that is not valid counts as if it were not in the
// log: State does not take it in, and a walk along a chain of versions meets an error there.
// Whether it is valid depends on nothing but its own bytes, so all processes, and every replay,
// agree on it.

// ErrEntry is matched by the error of an entry that says what none can say; so is
// errs.ErrCorrupt. It is not that of an entry which a newer program wrote.
var ErrEntry = errors.New("not a valid entry")

// Invalid is the error of an entry that is not valid.
func Invalid(e *wal.Entry, err error) error { return invalid(e, err) }

func invalid(e *wal.Entry, err error) error {
	return &errs.CorruptionError{Path: "wal", LSN: e.LSN, Offset: -1, Err: fmt.Errorf("%w: %w", ErrEntry, err)}
}

// mostTime is the latest moment of an entry, the start of the year 2400. The log gives
// no moment behind 2300 (package wal): file systems know no later one.
var mostTime, leastTime = time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)

// Dated reports whether the time of an entry is one that a store gives.
func Dated(e *wal.Entry) bool { return !e.Time.Before(leastTime) && !e.Time.After(mostTime) }

// Read is the record that an entry carries, of which all was checked but the line and
// the document. It is the one place where a predecessor is looked at: it is smaller than
// the entry's own position, so a walk from one to the next ends.
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
		err = fmt.Errorf("the entry names version %d as its predecessor", view.Previous)
	case !Dated(e):
		err = fmt.Errorf("it was committed at %d microseconds since 1970", e.Time.UnixMicro())
	}
	if err != nil {
		return record.View{}, invalid(e, err)
	}
	return view, nil
}

// isOf reports whether the key of an entry, which may be no key at all, is that of a document of kind k.
func isOf(e *wal.Entry, k *kind.Kind) bool { return len(e.Key) > 0 && e.Key[0] == k.Letter }

// checkKey wants the key of a document, of a scope or of the model, and the kind of
// entry that it has.
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
				err = fmt.Errorf("%s is not a key", human.Quote(e.Key))
			} else {
				err = checkID(kind.Lettered(e.Key[1]), e.Key[2:])
			}
		case letter == record.Writer:
			if want = record.KindWriter; e.Key != WriterKey || e.Delete {
				err = fmt.Errorf("%s is not a key", human.Quote(e.Key))
			}
		case letter == record.Purge:
			if want = record.KindPurge; e.Key != PurgeKey || e.Delete {
				err = fmt.Errorf("%s is not a key", human.Quote(e.Key))
			}
		case letter == record.Model:
			if want = record.KindModel; e.Key != ModelKey || e.Delete {
				err = fmt.Errorf("%s is not a key", human.Quote(e.Key))
			}
		default:
			err = fmt.Errorf("%s is not a key", human.Quote(e.Key))
		}
		if err != nil {
			return err
		}
	} else {
		return errors.New("it has no key")
	}
	if e.Kind != want {
		return fmt.Errorf("an entry of %s is not of kind %d", human.Quote(e.Key), e.Kind)
	}
	return nil
}

// checkID wants the id of a document of a kind.
func checkID(k *kind.Kind, id string) error {
	if err := jsondoc.CheckID("key", id, 0); err != nil {
		return err
	}
	return k.CheckID(id)
}

// Check says what is wrong with an entry, nil when State takes it in: all that Read
// looks at, and the line. The document is read where it is wanted.
func Check(e *wal.Entry) (record.View, error) {
	view, err := Read(e)
	if err != nil || e.Delete {
		return view, err
	}
	k := kind.Lettered(e.Key[0])
	switch {
	case k != nil:
		vectors := e.LSN
		if view.Created { // it can have no older vector
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

// LineIn is the line of the index that a document's entry stands for, with version and time; of a
// deletion nothing but that it is one. The record is for callers that need more.
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
			return index.Entry{}, view, invalid(e, fmt.Errorf("its index line: %w", err))
		}
	}
	if line.Version, line.By = e.LSN, e.Writer; line.Mtime == 0 {
		line.Mtime = e.Time.UnixMicro()
	}
	return line, view, nil
}

// foreignVectors are the FAISS ids, from there on, that no position of a log is: those
// that an import brought along, and those of index.StrayVector.
const foreignVectors = 1 << 48

// checkLine wants the line of this very entry, before it enters a table.
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
		return errors.New("it is one that a table has")
	case !k.IsFile(line.Filepath, e.Key[1:]):
		return fmt.Errorf("it names the file %s, not %s", human.Quote(line.Filepath), k.File(e.Key[1:]))
	case line.Size != int64(view.Size()):
		return fmt.Errorf("it names a document of %d bytes, not %d", line.Size, view.Size())
	case line.Dimension != index.UnknownDimension && line.Dimension != view.Dims():
		return fmt.Errorf("it names a vector of %d dimensions, not %d", line.Dimension, view.Dims())
	case line.VectorID < 0 || line.VectorID < foreignVectors && (uint64(line.VectorID) > e.LSN ||
		line.VectorID != 0 && view.Created):
		return fmt.Errorf("it names the vector %d, which is none of it", line.VectorID)
	}
	return nil
}

// DocumentIn is the document that an entry carries, of at most limit bytes.
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

// ModelIn is what an entry of the key 'v' says of the model.
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
