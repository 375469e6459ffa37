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

// writtenBy returns a writer in the form for a list: number and name, and the cause if the store
// wrote by itself.
func writtenBy(w *varve.Writer, cause string) string {
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
