package page

// settledBit is the bit in the word of the anchor's time that marks the anchor as confirmed. An older program
// reads the bit as part of the time: to it the anchor seems to have been set long ago, and it does not replace
// such an anchor.
const settledBit = 1 << 63

// anchorBit is set in the word of the anchor's offset, so that the word is non-zero for every offset that a
// clock has.
const anchorBit = 1 << 63

// Anchor returns the anchor that relates the wall clock to the machine's uptime: the difference between the
// two, the uptime at which the anchor was set, and whether a later reading of the clock has confirmed it. ok
// is false if no anchor was set. The offset is loaded first, the time only if there is an anchor.
func (p Page) Anchor() (offset, at int64, settled, ok bool) {
	v := p.words.Load(wordAnchorOffset)
	if v == 0 {
		return 0, 0, false, false
	}
	t := p.words.Load(wordAnchorTime)
	return int64(v ^ anchorBit), int64(t &^ settledBit), t&settledBit != 0, true
}

// SettleAnchor records that the anchor that was set at the given uptime was confirmed.
func (p Page) SettleAnchor(at int64) { p.raise(wordAnchorTime, uint64(at)|settledBit) }

// CastAnchor replaces the offset of the anchor, if the offset is still the one in the parameter was, or, if the
// parameter had is false, if there is still no anchor. It reports whether it did. Before that it raises the time of the
// anchor, so a process that sees the new offset sees the new time. The time only goes up, so a process that was stopped
// here and overtaken does not change the time of the newer anchor.
func (p Page) CastAnchor(was int64, had bool, offset, at int64) bool {
	old := uint64(0)
	if had {
		old = uint64(was) ^ anchorBit
	}
	p.raise(wordAnchorTime, uint64(at))
	return p.words.CompareAndSwap(wordAnchorOffset, old, uint64(offset)^anchorBit)
}
