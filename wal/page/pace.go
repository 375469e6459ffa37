package page

// Filed returns the position below which everything is in files, except for scopes that may lag.
func (p Page) Filed() uint64 { return p.words.Load(wordFiled) }

// RaiseFiled moves filed up.
func (p Page) RaiseFiled(to uint64) { p.raise(wordFiled, to) }

// FlushBytes returns how many bytes of log flushers have put into files recently.
func (p Page) FlushBytes() uint64 { return p.words.Load(wordFlushBytes) }

// FlushTime returns how many nanoseconds these bytes took.
func (p Page) FlushTime() uint64 { return p.words.Load(wordFlushTime) }

// SetFlushRate stores the bytes, then the time.
func (p Page) SetFlushRate(bytes, nanoseconds uint64) {
	p.words.Store(wordFlushBytes, bytes)
	p.words.Store(wordFlushTime, nanoseconds)
}

// Turns returns until when writers have taken turns, in nanoseconds of the machine's uptime.
func (p Page) Turns() uint64 { return p.words.Load(wordTurns) }

// SwapTurns replaces the value of Turns, and reports whether it was still old.
func (p Page) SwapTurns(old, new uint64) bool { return p.words.CompareAndSwap(wordTurns, old, new) }

// Rest returns until when background flushers pause, in milliseconds of the machine's uptime.
func (p Page) Rest() uint64 { return p.words.Load(wordRest) }

// SetRest records until when background flushers pause.
func (p Page) SetRest(until uint64) { p.words.Store(wordRest, until) }
