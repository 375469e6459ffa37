package page

// Filed returns the position below which all entries are in files, except those of scopes whose files may lag.
func (p Page) Filed() uint64 { return p.words.Load(wordFiled) }

// RaiseFiled raises the position that Filed returns.
func (p Page) RaiseFiled(to uint64) { p.raise(wordFiled, to) }

// FlushBytes returns the number of bytes of log that flushers have put into files recently.
func (p Page) FlushBytes() uint64 { return p.words.Load(wordFlushBytes) }

// FlushTime returns the number of nanoseconds that flushing the FlushBytes took.
func (p Page) FlushTime() uint64 { return p.words.Load(wordFlushTime) }

// SetFlushRate stores FlushBytes, then FlushTime.
func (p Page) SetFlushRate(bytes, nanoseconds uint64) {
	p.words.Store(wordFlushBytes, bytes)
	p.words.Store(wordFlushTime, nanoseconds)
}

// Turns returns the time at which the writers' turns end, in nanoseconds of the machine's uptime.
func (p Page) Turns() uint64 { return p.words.Load(wordTurns) }

// SwapTurns replaces the value old of Turns by new, and reports whether the value was still old.
func (p Page) SwapTurns(old, new uint64) bool { return p.words.CompareAndSwap(wordTurns, old, new) }

// Rest returns the time at which the pause of background flushers ends, in milliseconds of the machine's uptime.
func (p Page) Rest() uint64 { return p.words.Load(wordRest) }

// SetRest records the time at which the pause of background flushers ends, in milliseconds of the machine's uptime.
func (p Page) SetRest(until uint64) { p.words.Store(wordRest, until) }
