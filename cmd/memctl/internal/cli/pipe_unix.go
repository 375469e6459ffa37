//go:build unix

package cli

import (
	"errors"
	"os/signal"
	"syscall"
)

// leaveBrokenPipes makes a write to a pipe without a reader an error, instead of ending the
// process, until the returned function is called.
func leaveBrokenPipes() func() {
	signal.Ignore(syscall.SIGPIPE)
	return func() { signal.Reset(syscall.SIGPIPE) }
}

func BrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
