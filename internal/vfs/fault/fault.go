package fault

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Op is an operation: its kind, path, offset, size, number (Seq) and call site (Site()).
type Op = wrap.Op

// Kind is the kind of an operation, one of the constants of package wrap.
type Kind = wrap.Kind

// Rule returns the error with which an operation fails; nil lets it pass.
type Rule func(op *Op) error

// New wraps a file system. It calls all rules for each operation; the first error of a rule is used.
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
	case op.Kind == wrap.Close: // a descriptor is closed after close, whatever close returns
		call()
	}
	return fmt.Errorf("%s %s: %w", op.Kind, op.Path, err)
}

type short struct {
	n   int
	err error
}

func (s *short) Error() string { return fmt.Sprintf("short: %d bytes, then %v", s.n, s.err) }

// Short returns an error that makes a read or write process its first n bytes, and then fail with err. If err is nil,
// the operation is only short.
func Short(n int, err error) error { return &short{n, err} }

type after struct{ err error }

func (a *after) Error() string { return "after: " + a.err.Error() }

// After returns an error that makes the operation take place first, and then fail with err.
func After(err error) error { return &after{err} }

// Nth returns a rule that makes operations fail with err. Of the operations for which match returns true, the first
// n-1 pass. The next ones fail: as many as count says, or all of them if count is 0. Later ones pass again.
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

// Is returns a function that matches operations of these kinds.
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
