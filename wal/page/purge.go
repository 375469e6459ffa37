package page

// Purger returns the number, from NamePurger, of the process that is running a purge, or 0 if no process is recorded.
func (p Page) Purger() uint64 { return p.words.Load(wordPurger) }

// NamePurger returns the number by which the page identifies a process that purges: its id and the low half of its
// birth. The id alone is not sufficient, because the system may give it to another process later.
func NamePurger(pid int, birth uint64) uint64 { return uint64(pid)<<32 | uint64(uint32(birth)) }

// SwapPurger sets the number that Purger returns to new, but only if this number still equals old. It reports whether
// it set the number.
func (p Page) SwapPurger(old, new uint64) bool { return p.words.CompareAndSwap(wordPurger, old, new) }

// PurgeFailed reports whether a purge has failed, and no purge was completed after it.
func (p Page) PurgeFailed() bool { return p.words.Load(wordPurgeFailed) != 0 }

// SetPurgeFailed sets the value that PurgeFailed returns.
func (p Page) SetPurgeFailed(failed bool) { p.set(wordPurgeFailed, failed) }

// DisplacedBelow returns a position in the log. The document files that entries below this position replace must be
// overwritten, because a purge has failed. 0 means that no files must be overwritten.
func (p Page) DisplacedBelow() uint64 { return p.words.Load(wordDisplacedBelow) }

// RaiseDisplacedBelow raises the position that DisplacedBelow returns to the given position. A higher position stays
// unchanged.
func (p Page) RaiseDisplacedBelow(to uint64) { p.raise(wordDisplacedBelow, to) }

// SwapDisplacedBelow sets the position that DisplacedBelow returns to 0, but only if this position still equals old.
func (p Page) SwapDisplacedBelow(old uint64) { p.words.CompareAndSwap(wordDisplacedBelow, old, 0) }

// ClearDisplacedBelow sets the position that DisplacedBelow returns to 0.
func (p Page) ClearDisplacedBelow() { p.words.Store(wordDisplacedBelow, 0) }
