package wal

import (
	"math"
	"time"
)

// Pace information that writers and flushers of all processes share: how far the files are behind the log, how
// fast they follow, and a clock by which writers take turns if the files follow too slowly. All of it is
// advisory: no byte of a store depends on it.

// Unfiled returns how many bytes of durable entries are in no file yet, not counting scopes of working memory
// whose file may lag behind the log.
func (pc Pace) Unfiled() int64 {
	if !pc.l.shared.Mapped() || pc.l.private.Load() {
		return 0
	}
	files := pc.FiledTo()
	return int64(max(pc.l.shared.Durable(), files) - files)
}

// FiledTo returns the position below which all entries are in files, except those of scopes of working memory
// whose file may lag.
func (pc Pace) FiledTo() LSN {
	if !pc.l.shared.Mapped() || pc.l.private.Load() {
		return pc.l.Flushed()
	}
	return max(pc.l.Flushed(), pc.l.shared.Filed())
}

// settleSpan is the flushing time over which the flush rate is averaged. It is longer than a flush round that
// writes the index, during which no file is put in place.
const settleSpan = 5 * time.Second

// longRound is the duration from which a flush round is ignored for the rate: the machine may have slept.
const longRound = time.Minute

// Filed records that all entries below a position are in files, except those of scopes whose file may lag, and
// that the last flush round took the given time for the given number of bytes of log.
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

// Rate returns the number of bytes of log per second that the flushers put into files while they do nothing
// else, 0 if unknown.
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

// mostTurns is the maximum time by which the writers' clock, the end of the last turn, may be ahead; a later
// value is ignored.
const (
	mostTurns  = time.Minute
	turnsSlack = 10 * time.Second // difference between the clocks that two writers have read
)

// Turn gives a writer its turn after the turns of all writers that called Turn before. begins is the machine's
// uptime at which the earlier turns end. The turn lasts for cost and ends at ends. If the writers' clock would
// get too far ahead, the turn is shorter or empty, and later writers begin at the same time.
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

// GiveBack returns an unused turn, so that the turns after it begin earlier.
func (pc Pace) GiveBack(cost time.Duration) {
	for {
		v := pc.l.shared.Turns()
		if v < uint64(cost) || pc.l.shared.SwapTurns(v, v-uint64(cost)) {
			return
		}
	}
}
