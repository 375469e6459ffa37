package wal

// Anchor ties the clock that decides what has expired to the machine's uptime, for all processes of one boot,
// so that a wall clock that jumps has no effect. The zero Anchor means that there is none.
type Anchor struct {
	Offset int64 // time minus uptime, in milliseconds
	At     int64 // the uptime at which the anchor was set, in milliseconds, more than 0

	Settled bool // a later reading of the clock has confirmed the anchor: it stays for the rest of this boot
}

// Anchor returns the anchor of this boot, the zero Anchor if there is none or it cannot be read.
func (c Clock) Anchor() Anchor {
	if !c.l.shared.Mapped() || !c.l.shared.OfBoot(c.l.host) {
		return Anchor{}
	}
	offset, at, settled, ok := c.l.shared.Anchor()
	if !ok {
		return Anchor{}
	}
	return Anchor{Offset: offset, At: at, Settled: settled}
}

// Settle records that a later reading of the clock has confirmed an anchor.
func (c Clock) Settle(a Anchor) {
	if !c.l.o.ReadOnly && c.l.shared.Mapped() {
		c.l.shared.SettleAnchor(a.At)
	}
}

// Cast replaces the anchor was by is, and reports whether it did: another process may have replaced was first.
func (c Clock) Cast(was, is Anchor) bool {
	if c.l.o.ReadOnly || !c.l.shared.Mapped() {
		return false
	}
	return c.l.shared.CastAnchor(was.Offset, was != (Anchor{}), is.Offset, is.At)
}
