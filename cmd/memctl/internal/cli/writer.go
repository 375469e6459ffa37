package cli

import (
	"fmt"

	"github.com/varve-db/varve"
)

// WrittenBy returns a writer as text for a list: its number and its name. If the store made the change itself, the text
// contains the cause.
func WrittenBy(w *varve.Writer, cause string) string {
	by := varve.UnknownWriter
	switch {
	case w.Number != 0 && w.Since == 0: // the entry that describes the writer is lost
		by = fmt.Sprintf("%d", w.Number)
	case w.Number != 0:
		by = fmt.Sprintf("%d %s", w.Number, w.Name())
	}
	if cause != "" {
		by += " (" + cause + ")"
	}
	return by
}
