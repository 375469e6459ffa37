package varve

import (
	"context"
	"errors"

	"github.com/varve-db/varve/internal/text"
)

var errNoVectors = errors.New("this version does not search by vector yet")

// nearest finds the n memories whose embeddings are nearest to v.
func (st *Store) nearest(_ context.Context, _ []float32, _ *filters, _ int, _ float64) ([]text.Hit, error) {
	return nil, errNoVectors
}
