package verify

import (
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// Standing is one of the versions that a document's file may have.
type Standing struct {
	Version wal.LSN
	Absent  bool // the document has no file in this version
	Line    index.Entry
}

// errAgain means that the log or the index changed during a look-up, which the caller must repeat.
var errAgain = errors.New("the document keeps changing while it is read")

// errUnjudged means that a document cannot be checked because of damage of the log, which was reported.
var errUnjudged = errors.New("the document cannot be checked, because the log is damaged in a part that may have a " +
	"newer version")

// May lists the versions that a document's file may have, from the newest version back to the first version below
// flushed. The caller must have read flushed before it read the file.
func (v *Run) May(k *kind.Kind, id string, flushed wal.LSN) ([]Standing, error) {
	at, deleted, inLog := v.Source.State.Overlay().Get(k.Letter, id)
	if !inLog {
		s, err := v.inSet(k, id)
		return []Standing{s}, err
	}
	var list []Standing
	for {
		if at == 0 {
			return append(list, Standing{Absent: true}), nil
		}
		if at < v.Source.State.From() {
			s, err := v.inSet(k, id)
			return append(list, s), err
		}
		e, err := v.Source.Log.ReadAt(v.ctx, at)
		switch {
		case errors.Is(err, errs.ErrTruncated):
			return nil, errAgain
		case errors.Is(err, errs.ErrCorrupt):
			return nil, errUnjudged
		case err != nil:
			return nil, err
		case len(e.Key) == 0 || e.Key[0] != k.Letter || e.Key[1:] != id:
			if len(list) == 0 && !deleted {
				// Two keys have the same hash, and the overlay has the position of the other key.
				s, err := v.inSet(k, id)
				return []Standing{s}, err
			}
			return nil, errAgain
		}
		line, view, err := state.LineIn(&e)
		if err != nil {
			return nil, errUnjudged
		}
		list = append(list, Standing{Version: at, Absent: e.Delete, Line: line})
		if at < flushed {
			return list, nil
		}
		at = view.Previous
	}
}

func (v *Run) inSet(k *kind.Kind, id string) (Standing, error) {
	line, err := v.Line(k, id)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		return Standing{Absent: true}, nil
	case errors.Is(err, errs.ErrCorrupt):
		return Standing{}, errUnjudged
	case err != nil:
		return Standing{}, fmt.Errorf("looking up %s: %w", human.Quote(id), err)
	}
	return Standing{Version: line.Version, Line: line}, nil
}

// Line returns the line of a document in the index. If the index is damaged, only lines in undamaged blocks
// are found.
func (v *Run) Line(k *kind.Kind, id string) (index.Entry, error) {
	if !v.indexBad {
		return v.Source.State.Line(k.Letter, id)
	}
	if v.sound == nil {
		return index.Entry{}, errs.ErrCorrupt
	}
	b, ok, err := v.sound.Get(nil, k.Section, id)
	if err != nil {
		return index.Entry{}, err
	}
	if !ok {
		return index.Entry{}, errs.ErrCorrupt // the line may be in a damaged block
	}
	return index.ParseLine(b)
}
