package page

// settledBit is in the word of the anchor's time. An older program reads it as an anchor set long ago, which it
// does not replace.
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

// SettleAnchor records that the anchor was confirmed.
func (p Page) SettleAnchor(at int64) { p.raise(wordAnchorTime, uint64(at)|settledBit) }

// CastAnchor raises the time of the anchor, then replaces the offset, which was the given one if had is true,
// and reports whether it was unchanged until then. A process that sees the new offset sees the new time. The
// time only goes up, so a process that was stopped here and overtaken does not change the time of the newer
// anchor.
func (p Page) CastAnchor(was int64, had bool, offset, at int64) bool {
	old := uint64(0)
	if had {
		old = uint64(was) ^ anchorBit
	}
	p.raise(wordAnchorTime, uint64(at))
	return p.words.CompareAndSwap(wordAnchorOffset, old, uint64(offset)^anchorBit)
}
