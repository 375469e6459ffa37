package page

// settledBit is the bit in the word of the anchor's time that says that the anchor was confirmed. An older program
// reads the word as an anchor that was set long ago, and does not replace it.
const settledBit = 1 << 63

// anchorBit makes the word of every offset non-zero, except for one offset that no clock has.
const anchorBit = 1 << 63

// Anchor returns the anchor: the difference between time and uptime, the uptime at which it was set, and
// whether a later reading of the clock has confirmed it. ok is false if there is none. The offset is loaded
// first, the time only if there is an anchor.
func (p Page) Anchor() (offset, at int64, settled, ok bool) {
	v := p.words.Load(wordAnchorOffset)
	if v == 0 {
		return 0, 0, false, false
	}
	t := p.words.Load(wordAnchorTime)
	return int64(v ^ anchorBit), int64(t &^ settledBit), t&settledBit != 0, true
}

// SettleAnchor records that the anchor that was set at this uptime was confirmed.
func (p Page) SettleAnchor(at int64) { p.raise(wordAnchorTime, uint64(at)|settledBit) }

// CastAnchor raises the time of the anchor to at, then replaces its offset by the given one, and reports whether the
// offset was still was until then; had false means that there was no anchor. A process that sees the new offset also
// sees the new time. The time only goes up, so a process that was stopped here and overtaken does not change the time
// of the newer anchor.
func (p Page) CastAnchor(was int64, had bool, offset, at int64) bool {
	old := uint64(0)
	if had {
		old = uint64(was) ^ anchorBit
	}
	p.raise(wordAnchorTime, uint64(at))
	return p.words.CompareAndSwap(wordAnchorOffset, old, uint64(offset)^anchorBit)
}
