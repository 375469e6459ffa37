package past

import "github.com/varve-db/varve/errs"

// truncated says why a position below to is no longer kept: it was released, or the log that had it
// is gone, and the one that is there begins behind it.
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

// Begun is where a log begins that is kept from its first entry on and is not the first one of its
// store: what was before it is gone. 0 where nothing is known to be.
func (p *Log) Begun(to LSN) (LSN, error) {
	_, began, whole, err := p.Oldest(to)
	if err != nil || !whole || began <= p.Geometry.Start(1) {
		return 0, err
	}
	if first, err := p.First(to); err != nil || first < began { // a repair has begun the log again, and its past is in the archive
		return 0, err
	}
	return began, nil
}

// Gone is a *errs.HistoryGoneError for a position of an earlier log, which is gone; else nil.
func (p *Log) Gone(at, to LSN) error {
	if begun, err := p.Begun(to); err == nil && at < begun {
		return &errs.HistoryGoneError{Begin: begun}
	}
	return nil
}
