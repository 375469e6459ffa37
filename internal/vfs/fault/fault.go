package fault

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Op is one operation: kind, path, offset, size, number (Seq) and call site (Site()).
type Op = wrap.Op

// Kind is what an operation does, one of the constants of package wrap.
type Kind = wrap.Kind

// Rule decides over an operation; nil lets it pass.
type Rule func(op *Op) error

// New wraps a file system. All rules are asked, the first error counts.
func New(inner vfs.FS, rules ...Rule) vfs.FS {
	return wrap.New(inner, func(op *Op, call func() error) error {
		var fault error
		for _, rule := range rules {
			if err := rule(op); fault == nil {
				fault = err
			}
		}
		if fault != nil {
			return inject(op, call, fault)
		}
		return call()
	})
}

func inject(op *Op, call func() error, err error) error {
	var s *short
	var a *after
	switch {
	case errors.As(err, &s):
		op.Size = min(op.Size, s.n)
		if callErr := call(); callErr != nil {
			return callErr
		}
		return s.err
	case errors.As(err, &a):
		if callErr := call(); callErr != nil {
			return callErr
		}
		return a.err
	case op.Kind == wrap.Sync, op.Kind == wrap.Datasync, op.Kind == wrap.Barrier:
		return op.FailSync(err)
	case op.Kind == wrap.Close: // a descriptor is gone after close, whatever close says
		call()
	}
	return fmt.Errorf("%s %s: %w", op.Kind, op.Path, err)
}

type short struct {
	n   int
	err error
}

func (s *short) Error() string { return fmt.Sprintf("short: %d bytes, then %v", s.n, s.err) }

// Short lets n bytes of a read or write through, then fails with err.
func Short(n int, err error) error { return &short{n, err} }

type after struct{ err error }

func (a *after) Error() string { return "after: " + a.err.Error() }

// After does the operation and reports err all the same.
func After(err error) error { return &after{err} }

// Nth fails the n-th (from 1) operation that match accepts, and count-1 that
// follow it; count 0 is all that follow.
func Nth(n, count int, match func(op *Op) bool, err error) Rule {
	var seen atomic.Int64
	return func(op *Op) error {
		if !match(op) {
			return nil
		}
		i := int(seen.Add(1))
		if i < n || count > 0 && i >= n+count {
			return nil
		}
		return err
	}
}

// Is matches operations of these kinds.
func Is(kinds ...Kind) func(*Op) bool {
	return func(op *Op) bool {
		for _, k := range kinds {
			if op.Kind == k {
				return true
			}
		}
		return false
	}
}
