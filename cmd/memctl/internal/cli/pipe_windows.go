package cli

import (
	"errors"

	"golang.org/x/sys/windows"
)

func leaveBrokenPipes() func() { return func() {} }

func BrokenPipe(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}
