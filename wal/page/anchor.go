package page

// settledBit is the bit in wordAnchorTime that marks the anchor as confirmed. An older program reads the bit as part of
// the time. The anchor then seems to have been set long ago, and such a program does not replace it.
const settledBit = 1 << 63

// anchorBit is the bit of the anchor's offset that is inverted in wordAnchorOffset. So the word is 0 only if no anchor
// was set, and not for an anchor with the offset 0.
const anchorBit = 1 << 63

// Anchor returns the anchor, which relates the wall clock to the machine's uptime: offset is the difference of the
// two, uptime is the uptime at which the anchor was set, and settled reports whether a later reading of the clock
// has confirmed the anchor. ok is false if no anchor was set. Anchor first loads the offset and then, if an anchor
// was set, the uptime.
func (p Page) Anchor() (offset, uptime int64, settled, ok bool) {
	v := p.words.Load(wordAnchorOffset)
	if v == 0 {
		return 0, 0, false, false
	}
	t := p.words.Load(wordAnchorTime)
	return int64(v ^ anchorBit), int64(t &^ settledBit), t&settledBit != 0, true
}

// SettleAnchor records that the anchor that was set at the given uptime is confirmed.
func (p Page) SettleAnchor(uptime int64) { p.raise(wordAnchorTime, uint64(uptime)|settledBit) }

// CastAnchor raises the uptime of the anchor and sets its offset, and reports whether it set the offset. If
// hasPrev is true, it sets the offset only if the current offset is prev. If hasPrev is false, it sets the offset
// only if no anchor was set. CastAnchor first raises the uptime, so a process that sees the new offset also sees
// the new uptime. It never lowers the uptime: a process that is stopped here while another one sets a newer anchor
// does not change the uptime of that anchor.
func (p Page) CastAnchor(prev int64, hasPrev bool, offset, uptime int64) bool {
	old := uint64(0)
	if hasPrev {
		old = uint64(prev) ^ anchorBit
	}
	p.raise(wordAnchorTime, uint64(uptime))
	return p.words.CompareAndSwap(wordAnchorOffset, old, uint64(offset)^anchorBit)
}
