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
	Model     string // name of the model of the store's vectors, "" when unknown
	Dimension int    // dimension of the store's vectors; 0: unknown, or not the problem
	Other     string // the refused model, "" when unknown
	Got       int    // dimension of the refused vector
	Next      string // name of the model of a running re-embedding: its vectors are used once all are computed
	Since     uint64 // position in the log at which the store changed to Model; it is still rewriting its documents
	Query     bool   // the refused vector is that of a query
	Err       error  // ErrDimension of package vector if the dimension is wrong; may be nil
}

// Error returns the message, in one line.
func (e *ModelError) Error() string {
	have := "the store's vectors"
	if e.Model != "" {
		have += " are by the model " + human.Quote(e.Model)
	}
	var s string
	switch {
	case e.Dimension != 0:
		s = fmt.Sprintf("%s and have %d dimensions, but this vector has %d", have, e.Dimension, e.Got)
		if e.Model == "" {
			s = fmt.Sprintf("%s have %d dimensions, but this vector has %d", have, e.Dimension, e.Got)
		}
	case e.Query:
		s = fmt.Sprintf("%s, but the vector of the query is by the model %s", have, human.Quote(e.Other))
	case e.Next != "" && e.Next == e.Other:
		s = have + ", but these vectors are by the model " + human.Quote(e.Other)
	default:
		s = fmt.Sprintf("%s, but the embedder uses the model %s", have, human.Quote(e.Other))
	}
	switch {
	case e.Next != "":
		s += fmt.Sprintf(": a re-embedding with the model %s is in progress; its vectors are used once all are "+
			"computed (memctl reindex continues it, memctl reindex --cancel cancels it)", human.Quote(e.Next))
	case e.Since != 0:
		s += ": the model was changed, and the last documents are being rewritten (memctl reindex continues)"
	case e.Dimension == 0:
		s += ": use the store's model, or switch the store with memctl reindex"
	}
	return s
}

// Is makes the error match ErrModel.
func (e *ModelError) Is(target error) bool { return target == ErrModel }

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }
