package page

// Filed returns the position in the log below which all entries are in document files. Working-memory scopes whose
// files may lag behind the log do not count.
func (p Page) Filed() uint64 { return p.words.Load(wordFiled) }

// RaiseFiled raises the position that Filed returns to the given position. A higher position stays unchanged.
func (p Page) RaiseFiled(to uint64) { p.raise(wordFiled, to) }

// FlushBytes returns the number of bytes of log that flushers have recently written to document files.
func (p Page) FlushBytes() uint64 { return p.words.Load(wordFlushBytes) }

// FlushTime returns the time in nanoseconds that flushers needed for the bytes that FlushBytes returns.
func (p Page) FlushTime() uint64 { return p.words.Load(wordFlushTime) }

// SetFlushRate stores the values that FlushBytes and FlushTime return, in this order.
func (p Page) SetFlushRate(bytes, nanoseconds uint64) {
	p.words.Store(wordFlushBytes, bytes)
	p.words.Store(wordFlushTime, nanoseconds)
}

// Turns returns the time at which the last turn of a writer ends, in nanoseconds of the machine's uptime; see wal.Pace.
func (p Page) Turns() uint64 { return p.words.Load(wordTurns) }

// SwapTurns sets the value that Turns returns to new, but only if this value still equals old. It reports whether it
// set the value.
func (p Page) SwapTurns(old, new uint64) bool { return p.words.CompareAndSwap(wordTurns, old, new) }

// Rest returns the time until which background flushers pause, in milliseconds of the machine's uptime.
func (p Page) Rest() uint64 { return p.words.Load(wordRest) }

// SetRest records the time until which background flushers pause, in milliseconds of the machine's uptime.
func (p Page) SetRest(until uint64) { p.words.Store(wordRest, until) }
