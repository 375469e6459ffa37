package wal

import (
	"math"
	"time"
)

// Pace information that writers and flushers of all processes share: how far the files are behind the log, how
// fast they follow, and a clock by which writers take turns if the files follow too slowly. All of it is
// advisory: no byte of a store depends on it.

// Unfiled returns the number of bytes of durable log entries that are not in document files yet. Working-memory scopes
// whose files may lag behind the log do not count.
func (pc Pace) Unfiled() int64 {
	if !pc.l.shared.Mapped() || pc.l.private.Load() {
		return 0
	}
	files := pc.FiledTo()
	return int64(max(pc.l.shared.Durable(), files) - files)
}

// FiledTo returns the position in the log below which all entries are in document files. Working-memory scopes whose
// files may lag behind the log do not count.
func (pc Pace) FiledTo() LSN {
	if !pc.l.shared.Mapped() || pc.l.private.Load() {
		return pc.l.Flushed()
	}
	return max(pc.l.Flushed(), pc.l.shared.Filed())
}

// settleSpan is the time over which the flush rate is averaged. Only time during which a process flushes counts.
// settleSpan is longer than a flush that writes only the index and no document file.
const settleSpan = 5 * time.Second

// longRound is the duration from which a flush does not count for the flush rate, because the machine may have slept.
const longRound = time.Minute

// Filed records that all entries below a position are in document files, except those of working-memory scopes whose
// files may lag. It also records that the last flush took the given time for the given number of bytes of log.
func (pc Pace) Filed(held *Held, to LSN, bytes uint64, took time.Duration) error {
	if err := held.proves(pc.l); err != nil {
		return err
	}
	pc.l.shared.RaiseFiled(to)
	if took <= 0 || took > longRound {
		return nil
	}
	keep := math.Exp(-float64(took) / float64(settleSpan))
	sum := keep*float64(pc.l.shared.FlushBytes()) + float64(bytes)
	spent := keep*float64(pc.l.shared.FlushTime()) + float64(took)
	pc.l.shared.SetFlushRate(uint64(min(sum, 1<<50)), uint64(spent))
	return nil
}

// Rate returns the number of bytes of log per second that the flushers can write to document files while they do
// nothing else, or 0 if the rate is unknown.
func (pc Pace) Rate() float64 {
	if !pc.l.shared.Mapped() {
		return 0
	}
	spent := time.Duration(pc.l.shared.FlushTime())
	if spent < settleSpan/10 || spent > time.Hour {
		return 0
	}
	return float64(pc.l.shared.FlushBytes()) / spent.Seconds()
}

// mostTurns is the maximum time by which the end of the last turn that writers have taken (see Turn) may be
// ahead of now; a later value is ignored.
const (
	mostTurns  = time.Minute
	turnsSlack = 10 * time.Second // difference between the clocks that two writers have read
)

// Turn makes writers take turns. The turn of a writer lasts for cost, the time that its write costs the flusher, and
// begins after the turns of all earlier callers. Turn returns the uptimes of the machine at which the turn begins and
// ends; now is the current uptime. If the turn would end more than mostTurns after now, it is shorter or empty, and
// later writers begin at the same time.
func (pc Pace) Turn(now, cost time.Duration) (begins, ends time.Duration) {
	for {
		v := pc.l.shared.Turns()
		begins = max(now, time.Duration(v))
		if begins > now+mostTurns+turnsSlack {
			begins = now
		}
		ends = max(begins, min(begins+cost, now+mostTurns))
		if pc.l.shared.SwapTurns(v, uint64(ends)) {
			return begins, ends
		}
	}
}

// GiveBack gives back a turn that a writer did not use (see Turn), so that later turns begin earlier.
func (pc Pace) GiveBack(cost time.Duration) {
	for {
		v := pc.l.shared.Turns()
		if v < uint64(cost) || pc.l.shared.SwapTurns(v, v-uint64(cost)) {
			return
		}
	}
}
