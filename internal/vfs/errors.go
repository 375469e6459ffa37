package vfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"syscall"

	"github.com/varve-db/varve/errs"
)

// IsDiskFull reports whether err means that the disk, or a quota, is full.
func IsDiskFull(err error) bool {
	return errors.Is(err, errs.ErrDiskFull) || isAny(err, diskFull)
}

// Failed adds the operation and the path to an error of the system, and makes the error match errs.ErrDiskFull or
// errs.ErrPermission if it is of that kind. It returns nil if err is nil.
func Failed(doing, path string, err error) error {
	switch {
	case err == nil:
		return nil
	case IsDiskFull(err) && !errors.Is(err, errs.ErrDiskFull):
		return fmt.Errorf("%s %s: %w: %w", doing, path, errs.ErrDiskFull, err)
	case IsPermission(err) && !errors.Is(err, errs.ErrPermission):
		return fmt.Errorf("%s %s: %w: %w", doing, path, errs.ErrPermission, err)
	}
	return fmt.Errorf("%s %s: %w", doing, path, err)
}

var joined = reflect.TypeOf(errors.Join(io.EOF))

// CanWait reports whether an error has an external cause that may go away, so that a later attempt may succeed. Such
// causes are: the disk is full, a file cannot be written, another process holds a lock, a deadline has passed, or the
// user has not agreed yet to write highly compressed entries to files. If several errors are joined, CanWait returns
// true only if all of them have such a cause.
func CanWait(err error) bool {
	inflates := (*errs.InflatedError)(nil)
	if errors.Is(err, errs.ErrSyncFailed) || errors.Is(err, errs.ErrOutcomeUnknown) ||
		!IsDiskFull(err) && !IsPermission(err) && !errors.Is(err, errs.ErrLocked) &&
			!errors.Is(err, context.DeadlineExceeded) &&
			!errors.As(err, &inflates) {
		return false
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if reflect.TypeOf(err) == joined {
			parts := err.(interface{ Unwrap() []error }).Unwrap()
			return !slices.ContainsFunc(parts, func(part error) bool { return !CanWait(part) })
		}
	}
	return true
}

// IsPermission reports whether err means that an operation is not permitted to this process, or to any process because
// of a read-only mount.
func IsPermission(err error) bool {
	return errors.Is(err, errs.ErrPermission) || errors.Is(err, fs.ErrPermission) || isAny(err, refused)
}

// IsStarved reports whether a file could not be read for one of these reasons: this process lacks file descriptors or
// memory at the moment, the process was interrupted, or another process has a lease on the file. The file itself may be
// undamaged.
func IsStarved(err error) bool {
	return IsLeased(err) || isAny(err, []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR})
}

// IsUnopened reports whether an operation failed because the process had no free file descriptor. The operation itself
// was not tried: a folder that could not be opened for a sync has not failed to sync.
func IsUnopened(err error) bool {
	return errors.Is(err, errs.ErrTooManyFiles) || isAny(err, []syscall.Errno{syscall.EMFILE, syscall.ENFILE})
}

func isAny(err error, list []syscall.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
