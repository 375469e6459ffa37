package page

// Purger returns the process that runs a purge, in the form that NamePurger returns; 0 if there is none.
func (p Page) Purger() uint64 { return p.words.Load(wordPurger) }

// NamePurger returns the number by which the page names a process: its id and the low half of its birth. The id is not
// enough, because another process may have it by now.
func NamePurger(pid int, birth uint64) uint64 { return uint64(pid)<<32 | uint64(uint32(birth)) }

// SwapPurger replaces old, the process that runs a purge, by new, and reports whether it was still old.
func (p Page) SwapPurger(old, new uint64) bool { return p.words.CompareAndSwap(wordPurger, old, new) }

// PurgeFailed reports whether a purge has failed and none was completed since.
func (p Page) PurgeFailed() bool { return p.words.Load(wordPurgeFailed) != 0 }

// SetPurgeFailed records whether a purge has failed and none was completed since.
func (p Page) SetPurgeFailed(on bool) { p.set(wordPurgeFailed, on) }

// DisplacedBelow returns the position below which entries displace files that must be overwritten for a failed
// purge, 0 if there is none.
func (p Page) DisplacedBelow() uint64 { return p.words.Load(wordDisplacedBelow) }

// RaiseDisplacedBelow moves the position of DisplacedBelow up.
func (p Page) RaiseDisplacedBelow(to uint64) { p.raise(wordDisplacedBelow, to) }

// SwapDisplacedBelow sets the position of DisplacedBelow to 0 if the position is still was.
func (p Page) SwapDisplacedBelow(was uint64) { p.words.CompareAndSwap(wordDisplacedBelow, was, 0) }

// ClearDisplacedBelow sets the position of DisplacedBelow to 0.
func (p Page) ClearDisplacedBelow() { p.words.Store(wordDisplacedBelow, 0) }
