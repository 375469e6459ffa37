package errs

import (
	"errors"
	"fmt"
	"time"
)

// ErrEmbedderDown: the embedder was not called, because its last calls have failed. See EmbedderError.
var ErrEmbedderDown = errors.New("the embedder is down")

// EmbedderError reports that the embedder was not called, because its last calls have failed. It matches
// ErrEmbedderDown, and the error of the last call.
type EmbedderError struct {
	Since    time.Time // time of the first of these failures
	Failures int       // number of failures in a row
	Next     time.Time // the first call after this time calls the embedder again
	Err      error     // error of the last call
}

// Error returns the message, in one line.
func (e *EmbedderError) Error() string {
	s := fmt.Sprintf("%v since %s (%d failures in a row) and is not called again before %s", ErrEmbedderDown,
		e.Since.UTC().Format(time.RFC3339), e.Failures, e.Next.UTC().Format(time.RFC3339))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is makes the error match ErrEmbedderDown.
func (e *EmbedderError) Is(target error) bool { return target == ErrEmbedderDown }

// Unwrap returns the last failure.
func (e *EmbedderError) Unwrap() error { return e.Err }
