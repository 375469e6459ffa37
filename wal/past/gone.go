package past

import "github.com/varve-db/varve/errs"

// truncated returns, as lost, the error for a position below to that is no longer kept. Either the position was
// released, or an earlier log had it, and the current log begins above it.
func (p *Log) truncated(at, to LSN) (lost, err error) {
	begun, err := p.Begun(to)
	if err != nil {
		return nil, err
	}
	if at < begun {
		return &errs.HistoryGoneError{Begin: begun}, nil
	}
	oldest, _, _, err := p.Oldest(to)
	return &errs.TruncatedError{Oldest: oldest}, err
}

// Begun returns the position where the log begins, if the log is kept from its first entry on and the entries of an
// earlier log of the store are gone. Otherwise it returns 0.
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

// Gone returns a *errs.HistoryGoneError if the position belongs to an earlier log whose entries are gone, and otherwise
// nil.
func (p *Log) Gone(at, to LSN) error {
	if begun, err := p.Begun(to); err == nil && at < begun {
		return &errs.HistoryGoneError{Begin: begun}
	}
	return nil
}
