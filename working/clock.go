package working

import "time"

// Clock is where the in-process home has its times from. Lifetimes are measured
// by Mono, which never jumps, so a wall clock that does, either way, neither
// expires anything nor keeps it.
type Clock interface {
	Wall() time.Time     // what is written down
	Mono() time.Duration // since any fixed moment; never runs backwards
}

// SystemClock is the clock of the system. While a machine sleeps, its monotonic clock does not
// advance, and neither do lifetimes.
func SystemClock() Clock { return systemClock{start: time.Now()} }

type systemClock struct{ start time.Time }

func (systemClock) Wall() time.Time       { return time.Now() }
func (c systemClock) Mono() time.Duration { return time.Since(c.start) }

// Moment is a clock's reading as a State wants it.
type Moment struct {
	Time int64 // Unix microseconds: what is written down
	Tick int64 // milliseconds of the clock by which things expire
}

func moment(c Clock) Moment {
	return Moment{Time: c.Wall().UnixMicro(), Tick: c.Mono().Milliseconds()}
}

func fromMicro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
