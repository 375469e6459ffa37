package wal

// Anchor relates the wall clock to the machine's uptime, for all processes of one boot. Offset plus the uptime is the
// time by which working memory expires. Setting the wall clock later does not change this time, unless the anchor is
// replaced (see Settled). The zero Anchor means that no anchor was set.
type Anchor struct {
	Offset int64 // time minus uptime, in milliseconds
	At     int64 // the uptime at which the anchor was set, in milliseconds, more than 0

	// A later reading of the clock has confirmed the anchor. It is then not replaced until the next boot.
	Settled bool
}

// Anchor returns the anchor of this boot. It returns the zero Anchor if none was set in this boot, or if it cannot be
// read.
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

// Settle marks an anchor as confirmed by a reading of the clock; see Anchor.Settled.
func (c Clock) Settle(a Anchor) {
	if !c.l.o.ReadOnly && c.l.shared.Mapped() {
		c.l.shared.SettleAnchor(a.At)
	}
}

// Cast replaces the anchor old by the anchor next, and reports whether it did. It returns false if another process has
// already replaced old, or if this process cannot write to the shared page. If old is the zero Anchor, Cast sets the
// first anchor of this boot.
func (c Clock) Cast(old, next Anchor) bool {
	if c.l.o.ReadOnly || !c.l.shared.Mapped() {
		return false
	}
	return c.l.shared.CastAnchor(old.Offset, old != (Anchor{}), next.Offset, next.At)
}
