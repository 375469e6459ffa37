package working

import "time"

// Clock is the source of times of the in-process home. Lifetimes are measured by Mono, which never jumps: setting the
// wall clock neither expires a value early nor keeps it longer.
type Clock interface {
	Wall() time.Time     // returns the time that is recorded
	Mono() time.Duration // returns the time since some fixed moment; never decreases
}

// SystemClock returns the clock of the system. While a machine sleeps, its monotonic clock does not advance, so
// lifetimes do not pass.
func SystemClock() Clock { return systemClock{start: time.Now()} }

type systemClock struct{ start time.Time }

func (systemClock) Wall() time.Time       { return time.Now() }
func (c systemClock) Mono() time.Duration { return time.Since(c.start) }

// Moment is a reading of a clock, as State uses it.
type Moment struct {
	Time int64 // Unix microseconds: the time that is recorded
	Tick int64 // milliseconds of the clock by which lifetimes are measured
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
