package errs

import (
	"fmt"
	"strings"

	"github.com/varve-db/varve/internal/human"
)

// MatchError reports that an edit of a note was refused, because the note does not contain the text to replace, or
// contains it more than once. It matches ErrInvalid.
type MatchError struct {
	Text  string
	Count int   // number of occurrences of the text
	Lines []int // numbers of the lines, from 1, in which the first occurrences begin
}

// Error returns the message, in one line.
func (e *MatchError) Error() string {
	if e.Count == 0 {
		return fmt.Sprintf("%v: the text %s does not occur: read the note again, and copy the text exactly", ErrInvalid,
			human.Quote(e.Text))
	}
	var lines []string
	for i, n := range e.Lines {
		if i == 10 {
			lines = append(lines, "…")
			break
		}
		lines = append(lines, fmt.Sprint(n))
	}
	return fmt.Sprintf("%v: the text %s occurs %d times (lines %s), but must occur exactly once: include more of "+
		"the note's text before or after it",
		ErrInvalid, human.Quote(e.Text), e.Count, strings.Join(lines, ", "))
}

// Unwrap makes the error match ErrInvalid.
func (e *MatchError) Unwrap() error { return ErrInvalid }
