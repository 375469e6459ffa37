package vfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"syscall"

	"github.com/varve-db/varve/errs"
)

// IsDiskFull: no space, or no quota, is left.
func IsDiskFull(err error) bool {
	return errors.Is(err, errs.ErrDiskFull) || isAny(err, diskFull)
}

var joined = reflect.TypeOf(errors.Join(io.EOF))

// CanWait reports whether what failed was hindered only from outside, and is done as well by the next that
// comes: the disk is full, a file may not be written, another process has a lock, the time was over, or its
// user has to agree to what it writes; and that no other error is joined to it.
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

// IsPermission: we may not, or nobody may because it is mounted read-only.
func IsPermission(err error) bool {
	return errors.Is(err, errs.ErrPermission) || errors.Is(err, fs.ErrPermission) || isAny(err, refused)
}

// IsStarved: this process lacks files or memory just now, or was interrupted, or another process has a
// lease on the file. What it could not read may be whole.
func IsStarved(err error) bool {
	return IsLeased(err) || isAny(err, []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR})
}

// IsUnopened: there was no open file left to do it with. Whatever it is, it was not
// tried: a folder that could not be opened to sync it has not failed to sync.
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
