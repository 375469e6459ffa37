//go:build unix

package cli

import (
	"errors"
	"os/signal"
	"syscall"
)

// LeaveBrokenPipes has writing to a pipe that nobody reads be an error, instead of the
// end of the process, until the function that it returns is called.
func LeaveBrokenPipes() func() {
	signal.Ignore(syscall.SIGPIPE)
	return func() { signal.Reset(syscall.SIGPIPE) }
}

func BrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
