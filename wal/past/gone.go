package past

import "github.com/varve-db/varve/errs"

// truncated returns, as lost, the error for a position pos below end that is no longer kept. lost is a
// *errs.HistoryGoneError if only an earlier log had the position, because the current log begins above it.
// Otherwise the position was released, and lost is a *errs.TruncatedError.
func (p *Log) truncated(pos, end LSN) (lost, err error) {
	begun, err := p.Begun(end)
	if err != nil {
		return nil, err
	}
	if pos < begun {
		return &errs.HistoryGoneError{Begin: begun}, nil
	}
	oldest, _, _, err := p.Oldest(end)
	return &errs.TruncatedError{Oldest: oldest}, err
}

// Begun returns the position where the log begins, if the log is kept from its first entry on and the entries of an
// earlier log of the store are gone. Otherwise it returns 0. Begun examines only the part of the log below the
// position to.
func (p *Log) Begun(to LSN) (LSN, error) {
	_, began, whole, err := p.Oldest(to)
	if err != nil || !whole || began <= p.Geometry.Start(1) {
		return 0, err
	}
	// a repair has begun the log again, and the earlier part is in the archive
	if first, err := p.First(to); err != nil || first < began {
		return 0, err
	}
	return began, nil
}

// Gone returns a *errs.HistoryGoneError if position pos belongs to an earlier log whose entries are gone, and
// otherwise nil. It examines the log below end.
func (p *Log) Gone(pos, end LSN) error {
	if begun, err := p.Begun(end); err == nil && pos < begun {
		return &errs.HistoryGoneError{Begin: begun}
	}
	return nil
}
