package page

// settledBit is the bit in wordAnchorTime that marks the anchor as confirmed. An older program reads the bit as part of
// the time. The anchor then seems to have been set long ago, and such a program does not replace it.
const settledBit = 1 << 63

// anchorBit is the bit of the anchor's offset that is inverted in wordAnchorOffset. So the word is 0 only if no anchor
// was set, and not for an anchor with the offset 0.
const anchorBit = 1 << 63

// Anchor returns the anchor, which relates the wall clock to the machine's uptime: offset is the difference of the two,
// at is the uptime at which the anchor was set, and settled reports whether a later reading of the clock has confirmed
// it. ok is false if no anchor was set. Anchor first loads the offset and then, if an anchor was set, the time.
func (p Page) Anchor() (offset, at int64, settled, ok bool) {
	v := p.words.Load(wordAnchorOffset)
	if v == 0 {
		return 0, 0, false, false
	}
	t := p.words.Load(wordAnchorTime)
	return int64(v ^ anchorBit), int64(t &^ settledBit), t&settledBit != 0, true
}

// SettleAnchor records that the anchor that was set at the given uptime is confirmed.
func (p Page) SettleAnchor(at int64) { p.raise(wordAnchorTime, uint64(at)|settledBit) }

// CastAnchor sets the offset and the time of the anchor, and reports whether it set the offset. It sets the offset only
// if the current one is prev. If had is false, it does so only if no anchor was set. CastAnchor first raises the time,
// so a process that sees the new offset also sees the new time. It never lowers the time: a process that is stopped
// here while another one sets a newer anchor does not change the time of that anchor.
func (p Page) CastAnchor(prev int64, had bool, offset, at int64) bool {
	old := uint64(0)
	if had {
		old = uint64(prev) ^ anchorBit
	}
	p.raise(wordAnchorTime, uint64(at))
	return p.words.CompareAndSwap(wordAnchorOffset, old, uint64(offset)^anchorBit)
}
