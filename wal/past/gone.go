package past

import "github.com/varve-db/varve/errs"

// truncated returns the error about a position below to at which the log is no longer kept: either it was released, or
// the log that contained the position is gone and the present log begins above it.
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

// Begun returns the position at which the log begins, if the log is kept from its first entry on and is not the first
// log of its store: what was before that position is gone. Otherwise it returns 0.
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

// Gone returns a *errs.HistoryGoneError for a position that belongs to an earlier log, which is gone; otherwise nil.
func (p *Log) Gone(at, to LSN) error {
	if begun, err := p.Begun(to); err == nil && at < begun {
		return &errs.HistoryGoneError{Begin: begun}
	}
	return nil
}
