package wal

import (
	"math"
	"time"
)

// What writers and flushers of all processes tell each other about their pace: how far the files are
// behind the log, how fast they follow, and a clock by which writers take turns when that is too slow.
// All of it is advice: no byte of a store depends on it.

// Unfiled is how many durable bytes of log are in no file yet. A scope of working memory whose file
// may lag does not count.
func (pc Pace) Unfiled() int64 {
	if !pc.l.shared.Mapped() || pc.l.private.Load() {
		return 0
	}
	files := pc.FiledTo()
	return int64(max(pc.l.shared.Durable(), files) - files)
}

// FiledTo is the position below which all is in files, apart from scopes of working memory that may lag.
func (pc Pace) FiledTo() LSN {
	if !pc.l.shared.Mapped() || pc.l.private.Load() {
		return pc.l.Flushed()
	}
	return max(pc.l.Flushed(), pc.l.shared.Filed())
}

// settleSpan is the time of flushing over which its rate is the mean: longer than a round that
// writes the index, which puts no file in place for a while.
const settleSpan = 5 * time.Second

// longRound is from when on the time of a round says nothing: the machine may have slept.
const longRound = time.Minute

// Filed records that everything below a position is in files, apart from scopes that may lag, and
// that the round that did it took so long for so many bytes of log.
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

// Rate is how many bytes of log a second the flushers put into files while they do nothing
// else, 0 while that is not known.
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

// mostTurns is how far ahead the writers' clock may be: what is said beyond it is not believed.
const (
	mostTurns  = time.Minute
	turnsSlack = 10 * time.Second // between the clocks that two writers have read
)

// Turn gives a writer its turn behind all that have taken one: the moment, of the machine's uptime,
// at which those before it are over. Its own lasts until ends, as long as cost, but never so long that the
// clock would no longer be trusted: then those behind it begin when it does.
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

// GiveBack takes a turn off the clock that its writer did not use.
func (pc Pace) GiveBack(cost time.Duration) {
	for {
		v := pc.l.shared.Turns()
		if v < uint64(cost) || pc.l.shared.SwapTurns(v, v-uint64(cost)) {
			return
		}
	}
}
