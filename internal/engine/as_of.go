package engine

import (
	"context"
	"fmt"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// StateAt returns in list, for each document that changed in the range [from, to) of the log, the newest change in
// this range. from is the position up to which an index covers the log. overtaken has the newest change of each of
// these documents that changed again at or after to. If a newer index was mapped since, StateAt returns ErrMoved,
// because the state of this process no longer lists the entries that the newer index covers.
func (eng *Engine) StateAt(ctx context.Context, from,
	to wal.LSN) (list []index.Change, overtaken []index.At, err error) {
	_, changes, covered := eng.state.Moment(from, false)
	if covered > from {
		return nil, nil, ErrMoved
	}
	list = make([]index.Change, 0, len(changes))
	lines := lineStore{left: keptLines}
	r := eng.log.Reader()
	for _, at := range changes {
		pos := at.Pos
		e, err := r.At(ctx, pos)
		if err != nil {
			return nil, nil, err
		}
		for pos >= to {
			if pos, e, err = eng.versionBefore(ctx, e, from); err != nil {
				return nil, nil, err
			}
		}
		if pos < from {
			continue
		}
		if pos != at.Pos {
			overtaken = append(overtaken, at)
		}
		c, ok, err := eng.IndexChange(&e)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		if c.Finished, err = lines.keep(&e); err != nil {
			return nil, nil, err
		}
		list = append(list, c)
	}
	return list, overtaken, nil
}

// versionBefore returns the position and the entry of the version of a document that precedes the entry e. from is the
// position up to which the index covers the log. If the returned position is below from, the preceding version is in
// the index or does not exist, and the returned entry must not be used.
func (eng *Engine) versionBefore(ctx context.Context, e wal.Entry, from wal.LSN) (wal.LSN, wal.Entry, error) {
	view, err := state.Read(&e)
	if err != nil || view.Previous < from {
		return view.Previous, e, err
	}
	before, err := eng.log.ReadAt(ctx, view.Previous)
	if err == nil && before.Key != e.Key {
		err = ErrMoved
	}
	if err == nil {
		_, err = state.Check(&before)
	}
	if NoVersion(err) {
		return 0, before, nil
	}
	return view.Previous, before, err
}

// IndexChange returns the change that a log entry makes in the index, without the index line. It returns false if the
// entry is not that of a document in the index.
func (eng *Engine) IndexChange(e *wal.Entry) (index.Change, bool, error) {
	k := eng.kinds.Of(e.Key)
	if k == nil {
		return index.Change{}, false, nil
	}
	c := index.Change{Section: k.Section, ID: e.Key[1:], Version: e.LSN, Deleted: e.Delete}
	if k != eng.kinds.Assemblies || e.Delete {
		return c, true, nil
	}
	view, err := state.Read(e)
	if err == nil {
		c.Members, err = assembly.MembersOf(view.Line)
	}
	if err != nil {
		err = fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	return c, true, err
}

// FinishedLine appends the index line of a log entry to dst, in the complete form in which the index stores it.
func FinishedLine(dst []byte, e *wal.Entry) ([]byte, error) {
	view, err := state.Read(e)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	return index.Finish(dst, view.Line, e.LSN, e.Time.UnixMicro(), e.Writer)
}

// keptLines is the maximum size in bytes of the index lines that a rewrite of the index keeps in memory. The rewrite
// needs the lines in the order of the keys; for a line that is not kept, it reads the log frame a second time.
const keptLines = 16 << 20

// lineStore stores index lines. It allocates memory for many lines at once.
type lineStore struct {
	chunk []byte
	left  int // number of bytes that may still be stored
}

// keep adds the complete index line of a log entry to s and returns it. It returns nil for a deletion, and if s has no
// bytes left.
func (s *lineStore) keep(e *wal.Entry) ([]byte, error) {
	if e.Delete || s.left <= 0 {
		return nil, nil
	}
	const chunk, most = 64 << 10, 16 << 10
	if cap(s.chunk)-len(s.chunk) < most {
		s.chunk = make([]byte, 0, chunk)
	}
	from := len(s.chunk)
	b, err := FinishedLine(s.chunk, e)
	if err != nil {
		return nil, err
	}
	s.chunk = b
	s.left -= len(b) - from
	return b[from:len(b):len(b)], nil
}
