package page

// Purger returns the process that is running a purge, as NamePurger names it; 0 if there is none.
func (p Page) Purger() uint64 { return p.words.Load(wordPurger) }

// NamePurger returns the number by which the page names a process: its id and the low half of its birth. The id
// alone is not enough, because another process may have it by now.
func NamePurger(pid int, birth uint64) uint64 { return uint64(pid)<<32 | uint64(uint32(birth)) }

// SwapPurger records the process new as the one that is running a purge, if old is still recorded, and reports
// whether it did.
func (p Page) SwapPurger(old, new uint64) bool { return p.words.CompareAndSwap(wordPurger, old, new) }

// PurgeFailed reports whether a purge has failed and no later one was completed.
func (p Page) PurgeFailed() bool { return p.words.Load(wordPurgeFailed) != 0 }

// SetPurgeFailed records whether a purge has failed and no later one was completed.
func (p Page) SetPurgeFailed(on bool) { p.set(wordPurgeFailed, on) }

// DisplacedBelow returns the position below which document files that log entries replace must be overwritten
// because a purge has failed, 0 if there is none.
func (p Page) DisplacedBelow() uint64 { return p.words.Load(wordDisplacedBelow) }

// RaiseDisplacedBelow raises the position of DisplacedBelow; it never lowers it.
func (p Page) RaiseDisplacedBelow(to uint64) { p.raise(wordDisplacedBelow, to) }

// SwapDisplacedBelow sets the position of DisplacedBelow to 0 if that position still equals was.
func (p Page) SwapDisplacedBelow(was uint64) { p.words.CompareAndSwap(wordDisplacedBelow, was, 0) }

// ClearDisplacedBelow sets the position of DisplacedBelow to 0.
func (p Page) ClearDisplacedBelow() { p.words.Store(wordDisplacedBelow, 0) }
