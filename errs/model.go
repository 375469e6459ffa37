package errs

import (
	"errors"
	"fmt"

	"github.com/varve-db/varve/internal/human"
)

// ErrModel: a vector, or the model that makes vectors, differs from the model of the store. See
// ModelError.
var ErrModel = errors.New("another model")

// ModelError reports that a vector, or the model that makes vectors, differs from the model of the
// store. It matches ErrModel, and also ErrDimension if the dimensions differ.
type ModelError struct {
	Model     string // of the store's vectors, "" when nobody said
	Dimension int    // of them, 0: not known, or not what is wrong
	Other     string // what was refused, "" when it does not say
	Got       int    // its dimension
	Next      string // a re-embedding by this model is under way: its vectors serve when all are there
	Since     uint64 // the store has changed to Model at this position, and rewrites its documents
	Query     bool   // it was the vector of a query
	Err       error  // ErrDimension of package vector where the dimension is wrong; may be nil
}

// Error is the message, in one line.
func (e *ModelError) Error() string {
	have := "the store's vectors"
	if e.Model != "" {
		have += " are by " + human.Quote(e.Model)
	}
	var s string
	switch {
	case e.Dimension != 0:
		s = fmt.Sprintf("%s of %d dimensions, this vector of %d", have, e.Dimension, e.Got)
		if e.Model == "" {
			s = fmt.Sprintf("%s are of %d dimensions, this one of %d", have, e.Dimension, e.Got)
		}
	case e.Query:
		s = fmt.Sprintf("%s, that of the query is by %s", have, human.Quote(e.Other))
	case e.Next != "" && e.Next == e.Other:
		s = have + ", these by " + human.Quote(e.Other)
	default:
		s = fmt.Sprintf("%s, the embedder asks %s", have, human.Quote(e.Other))
	}
	switch {
	case e.Next != "":
		s += fmt.Sprintf(": a re-embedding by %s is under way, and its vectors serve as soon as all of them are there (memctl reindex goes on with it, --cancel calls it off)", human.Quote(e.Next))
	case e.Since != 0:
		s += ": the model was changed, and the last documents are being rewritten (memctl reindex goes on with it)"
	case e.Dimension == 0:
		s += ": ask that one, or change the store's with memctl reindex"
	}
	return s
}

// Is makes the error match ErrModel.
func (e *ModelError) Is(target error) bool { return target == ErrModel }

// Unwrap gives the cause.
func (e *ModelError) Unwrap() error { return e.Err }
