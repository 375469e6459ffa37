package words

import "github.com/varve-db/varve/internal/words/query"

// weightOf is what a word in a field other than the content counts.
func weightOf(f query.Field) int32 {
	switch f {
	case query.Name:
		return 2 * unit
	case query.Caption:
		return unit / 2
	}
	return unit
}

// Weights are in halves, so that their sums are whole numbers.
const unit = 2
