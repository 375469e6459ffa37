package working

import "time"

// Clock is the source of times of the in-process home and of a Memory. Lifetimes are measured by Mono, which never
// jumps: setting the wall clock does not change when a value expires.
type Clock interface {
	Wall() time.Time     // returns the time of day, which is recorded with each write
	Mono() time.Duration // returns the time since a fixed moment; never decreases
}

// SystemClock returns the clock of the system. Its Mono may not advance while the machine sleeps; values then expire
// later.
func SystemClock() Clock { return systemClock{start: time.Now()} }

type systemClock struct{ start time.Time }

func (systemClock) Wall() time.Time       { return time.Now() }
func (c systemClock) Mono() time.Duration { return time.Since(c.start) }

// Moment is one reading of both times of a clock, in the form that State uses.
type Moment struct {
	Time int64 // time of day in Unix microseconds, which is recorded with each write
	Tick int64 // time in milliseconds by which lifetimes are measured
}

func moment(c Clock) Moment {
	return Moment{Time: c.Wall().UnixMicro(), Tick: c.Mono().Milliseconds()}
}

func fromMicro(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
