package words

import "github.com/varve-db/varve/internal/words/query"

// weightOf returns the weight of a word in a field other than the content, in multiples of 1/unit.
func weightOf(f query.Field) int32 {
	switch f {
	case query.Name:
		return 2 * unit
	case query.Caption:
		return unit / 2
	}
	return unit
}

// unit represents the weight 1: weights are in halves, so that their sums are whole numbers.
const unit = 2
