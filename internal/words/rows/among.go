package rows

import (
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/bitset"
	"github.com/varve-db/varve/internal/words/order"
)

// Among calls visit for live rows, in no particular order, until visit returns false. subsets has sets of rows, by
// the ID of their part. If a part has a set in subsets, Among visits only the rows in that set; a nil set is
// empty. Of any other part, Among visits all rows. In the rows that it passes to visit, Key is 0 and ID is nil.
func Among(v *words.Set, subsets map[uint64]bitset.Set, visit func(*Row) (bool, error)) error {
	var row Row
	for _, p := range v.Parts() {
		set, some := subsets[p.ID]
		for r := uint32(0); int(r) < p.Seg.Rows; r++ {
			if some && r&63 == 0 && (set == nil || set[r>>6] == 0) {
				r += 63
				continue
			}
			if some && !set.Has(r) || p.Dead(r) {
				continue
			}
			row.part, row.row, row.ID = p, r, nil
			if ok, err := visit(&row); err != nil || !ok {
				return err
			}
		}
	}
	return nil
}

// Listed returns the rows that Among visits, with their ids and their keys in order o.
func Listed(v *words.Set, only map[uint64]bitset.Set, o order.Order) (list []Row, err error) {
	err = Among(v, only, func(r *Row) (bool, error) {
		row := *r
		var err error
		if row.Key, err = r.Of(o); err == nil {
			_, err = row.Named()
		}
		list = append(list, row)
		return true, err
	})
	return list, err
}
