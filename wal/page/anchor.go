package page

// settledBit is the bit in the word of the anchor's time that marks the anchor as confirmed. An older program
// reads the bit as part of the time: the anchor then seems to have been set long ago, and that program does not
// replace such an anchor.
const settledBit = 1 << 63

// anchorBit is the bit that is inverted in the word that stores the anchor's offset. So the word is 0 only if no
// anchor was set, and not for the offset 0.
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

// CastAnchor sets the offset of the anchor, if the anchor still has the offset was (had is true), or if there is still
// no anchor (had is false). It reports whether it did. Before that it raises the time of the anchor, so a process that
// sees the new offset sees the new time. The time is only raised: a process that is stopped here while another one sets
// a newer anchor does not change the time of that anchor.
func (p Page) CastAnchor(was int64, had bool, offset, at int64) bool {
	old := uint64(0)
	if had {
		old = uint64(was) ^ anchorBit
	}
	p.raise(wordAnchorTime, uint64(at))
	return p.words.CompareAndSwap(wordAnchorOffset, old, uint64(offset)^anchorBit)
}
