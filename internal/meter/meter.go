package meter

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Kind is a kind of operation that is counted.
type Kind int

// The kinds of operations.
const (
	Put Kind = iota
	Delete
	Apply
	Transact
	Get
	Search
	Sync     // a sync of the log
	LockWait // a wait for a lock of another process
	Flush    // a round of the flusher
	Slowed   // a writer waits until the files have caught up with the log
	kinds
)

// Bounds are the upper bounds of the buckets of durations. One more bucket is for longer durations.
var Bounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// stripes is the number of copies of each counter; sampled is the number of calls of Get per call whose
// duration is measured.
const (
	stripes = 8
	sampled = 16
)

// counters are the counters of one kind of operation. They have their own cache lines, so that counting one kind does
// not slow down counting another.
type counters struct {
	ok, failed atomic.Uint64
	sum        atomic.Int64 // sum of the durations in nanoseconds
	buckets    [len(Bounds) + 1]atomic.Uint64
	_          [64]byte
}

// Meters are the counters of a store. The zero value is ready for use; a nil *Meters counts nothing.
type Meters struct{ of [kinds][stripes]counters }

// Begin returns the present time, to be passed to End. It returns the zero time if the duration is not measured.
func (m *Meters) Begin(k Kind) time.Time {
	if m == nil || k == Get && rand.Uint32N(sampled) != 0 {
		return time.Time{}
	}
	return time.Now()
}

// End counts an operation that began at the time began, which Begin returned. If began is the zero time, End does not
// record the duration. failed reports whether the operation failed.
func (m *Meters) End(k Kind, began time.Time, failed bool) {
	if m == nil {
		return
	}
	c := &m.of[k][rand.Uint32N(stripes)]
	if failed {
		c.failed.Add(1)
	} else {
		c.ok.Add(1)
	}
	if !began.IsZero() {
		c.took(time.Since(began))
	}
}

// Took counts an operation of kind k that succeeded, with its duration d.
func (m *Meters) Took(k Kind, d time.Duration) {
	if m == nil {
		return
	}
	c := &m.of[k][rand.Uint32N(stripes)]
	c.ok.Add(1)
	c.took(d)
}

func (c *counters) took(d time.Duration) {
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	c.buckets[i].Add(1)
	c.sum.Add(int64(d))
}

// Reading has the counts and durations of one kind of operation.
type Reading struct {
	OK, Failed uint64
	Buckets    [len(Bounds) + 1]uint64 // counts of those operations whose duration was measured, by bucket
	Sum        time.Duration           // sum of the measured durations
}

// Read returns the counts and durations of a kind of operation so far.
func (m *Meters) Read(k Kind) (r Reading) {
	if m == nil {
		return r
	}
	for i := range m.of[k] {
		c := &m.of[k][i]
		r.OK, r.Failed, r.Sum = r.OK+c.ok.Load(), r.Failed+c.failed.Load(), r.Sum+time.Duration(c.sum.Load())
		for j := range c.buckets {
			r.Buckets[j] += c.buckets[j].Load()
		}
	}
	return r
}
