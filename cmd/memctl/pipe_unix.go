//go:build unix

package main

import (
	"errors"
	"os/signal"
	"syscall"
)

// leaveBrokenPipes has writing to a pipe that nobody reads be an error, instead of the
// end of the process, until the function that it returns is called.
func leaveBrokenPipes() func() {
	signal.Ignore(syscall.SIGPIPE)
	return func() { signal.Reset(syscall.SIGPIPE) }
}

func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
