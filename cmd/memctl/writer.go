package main

import (
	"fmt"

	"github.com/varve-db/varve"
)

// writerItem returns a writer for a document, nil for an unknown one.
func writerItem(w *varve.Writer) *varve.Writer {
	if w.Number == 0 {
		return nil
	}
	return w
}

// writtenBy returns a writer as a list has it: number and name, and why the store wrote.
func writtenBy(w *varve.Writer, cause string) string {
	by := varve.UnknownWriter
	switch {
	case w.Number != 0 && w.Since == 0: // its explanation is lost
		by = fmt.Sprintf("%d", w.Number)
	case w.Number != 0:
		by = fmt.Sprintf("%d %s", w.Number, w.Name())
	}
	if cause != "" {
		by += " (" + cause + ")"
	}
	return by
}
