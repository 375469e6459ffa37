package wal

// Anchor ties the time of what expires to the machine's uptime, for all processes of one boot: a
// wall clock that jumps has no effect. The zero Anchor means that there is none.
type Anchor struct {
	Offset int64 // milliseconds: the time less the uptime
	At     int64 // the uptime at which it was cast, in milliseconds, more than 0

	Settled bool // a later reading of the clock has confirmed it: it stays for the rest of this boot
}

// Anchor returns the anchor of this boot, the zero Anchor if there is none or it cannot be read.
func (l *FileLog) Anchor() Anchor {
	if l.shared.Shared == nil || !l.shared.ofBoot(l.host) {
		return Anchor{}
	}
	offset := l.shared.Load(wordTicks)
	if offset == 0 {
		return Anchor{}
	}
	at := l.shared.Load(wordTicksAt)
	return Anchor{Offset: int64(offset ^ anchorBit), At: int64(at &^ settledBit), Settled: at&settledBit != 0}
}

// SettleAnchor records that a reading of the clock has confirmed an anchor.
func (l *FileLog) SettleAnchor(a Anchor) {
	if !l.o.ReadOnly && l.shared.Shared != nil {
		l.shared.raise(wordTicksAt, uint64(a.At)|settledBit)
	}
}

// settledBit is in the word of Anchor.At. An older program sees an anchor cast long ago, which it does not replace.
const settledBit = 1 << 63

// anchorBit makes of every offset but one that no clock has a word that is not 0.
const anchorBit = 1 << 63

// CastAnchor replaces an anchor, and reports whether it did: another process may have replaced it
// first.
func (l *FileLog) CastAnchor(was, is Anchor) bool {
	if l.o.ReadOnly || l.shared.Shared == nil {
		return false
	}
	old := uint64(0)
	if was != (Anchor{}) {
		old = uint64(was.Offset) ^ anchorBit
	}
	// A process that sees the one sees the other. The moment only goes up: one who was stopped here
	// and has been overtaken takes nothing from the newer one.
	l.shared.raise(wordTicksAt, uint64(is.At))
	return l.shared.CompareAndSwap(wordTicks, old, uint64(is.Offset)^anchorBit)
}
