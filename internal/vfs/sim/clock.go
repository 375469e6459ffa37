package sim

import (
	"context"
	"slices"
	"time"
)

// deadline is a context that ends at a time of the simulated clock. It has AfterFunc, so that contexts derived from it
// need no goroutine.
type deadline struct {
	context.Context // the parent context
	s               *Sim
	at              time.Time
	done            chan struct{}
	err             error
	after           []*func()
}

// WithTimeout does the same as context.WithTimeout, by the simulated clock.
func (p *Proc) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	s := p.s
	c := &deadline{Context: parent, s: s, at: s.now.Add(d), done: make(chan struct{})}
	if outer, ok := parent.(*deadline); ok {
		outer.AfterFunc(func() { c.end(outer.err) })
	}
	s.timers = append(s.timers, c)
	return c, func() { c.end(context.Canceled) }
}

func (c *deadline) Deadline() (time.Time, bool) { return c.at, true }
func (c *deadline) Done() <-chan struct{}       { return c.done }

func (c *deadline) Err() error {
	if c.err != nil {
		return c.err
	}
	return c.Context.Err()
}

// AfterFunc calls f when the context ends. Package context uses this method of contexts of other packages.
func (c *deadline) AfterFunc(f func()) (stop func() bool) {
	if c.err != nil {
		f()
		return func() bool { return false }
	}
	c.after = append(c.after, &f)
	return func() bool {
		i := slices.Index(c.after, &f)
		if i >= 0 {
			c.after = slices.Delete(c.after, i, i+1)
		}
		return i >= 0
	}
}

func (c *deadline) end(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	close(c.done)
	if i := slices.Index(c.s.timers, c); i >= 0 {
		c.s.timers = slices.Delete(c.s.timers, i, i+1)
	}
	after := c.after
	c.after = nil
	for _, f := range after {
		(*f)()
	}
}

// advance sets the simulated clock, and ends the contexts whose time has come.
func (s *Sim) advance(to time.Time) {
	s.now = to
	for i := 0; i < len(s.timers); {
		if c := s.timers[i]; !c.at.After(to) {
			c.end(context.DeadlineExceeded) // removes c from the list
			i = 0
		} else {
			i++
		}
	}
}
