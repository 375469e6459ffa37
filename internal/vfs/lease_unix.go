//go:build linux || darwin

package vfs

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve/errs"
)

// patience limits the time that an open waits for a lease of another process. A flusher of Varve holds a lease for
// microseconds. A process that holds a lease longer was stopped, or holds it on purpose. After a wait that has reached
// the limit, opens wait only for leaseBrief until a time as long as the limit has passed. So many leased files do not
// cause many long waits.
type patience struct {
	most  time.Duration
	brief atomic.Pointer[time.Time] // waits are brief until this time
}

func newPatience(limit time.Duration) *patience { return &patience{most: limit} }

const (
	leaseMost  = 30 * time.Second // the default limit
	leaseBrief = 10 * time.Millisecond
	leasePause = 20 * time.Microsecond
)

// open calls the function open, which opens the file name without blocking, and repeats the call while a lease of
// another process refuses it. If the lease lasts longer than the time limit, the error is an *errs.LockError. A nil p
// has the default limit.
func (p *patience) open(name string, open func() (int, error)) (int, error) {
	fd, err := open()
	if err != unix.EWOULDBLOCK {
		return fd, err
	}
	if p == nil {
		p = newPatience(leaseMost)
	}
	left := p.most
	if until := p.brief.Load(); until != nil && time.Now().Before(*until) {
		left = min(left, leaseBrief)
	}
	began := time.Now()
	for pause := leasePause; time.Since(began) < left; pause = min(2*pause, 1000*leasePause) {
		time.Sleep(min(pause, left))
		if fd, err = open(); err != unix.EWOULDBLOCK {
			return fd, err
		}
	}
	until := time.Now().Add(p.most)
	p.brief.Store(&until)
	holder := errs.Holder{PID: leasedBy(name)}
	if holder.PID != 0 {
		holder.Command = command(holder.PID)
	}
	return -1, &errs.LockError{Path: name, Holder: holder, Err: fmt.Errorf("%w, waited %v", errLeased, left)}
}

// lock calls tryLock, a function of a library that opens the file name and locks it without blocking. While a
// lease of another process refuses the open, lock repeats the call as open does. If another process has the lock,
// ok is false and the error is nil.
func (p *patience) lock(name string, tryLock func() (bool, error)) (ok bool, err error) {
	_, err = p.open(name, func() (int, error) {
		if ok, err = tryLock(); errors.Is(err, unix.EWOULDBLOCK) {
			return -1, unix.EWOULDBLOCK
		}
		return 0, err
	})
	return ok && err == nil, err
}

// errLeased is in every error for which IsLeased returns true.
var errLeased = errors.New("another process has a lease on the file (F_SETLEASE)")

// IsLeased reports whether err means that a file could not be opened because another process has a lease on it.
// Nothing is known about the contents of the file then.
func IsLeased(err error) bool { return errors.Is(err, errLeased) }
