package rows

import (
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/bitset"
	"github.com/varve-db/varve/internal/words/order"
)

// Among visits, in no order, the live rows of some sets by the id of their part, and of a part that is not
// among these all, until visit says no. Their keys are 0, their ids not read.
func Among(v *words.Set, only map[uint64]bitset.Set, visit func(*Row) (bool, error)) error {
	var row Row
	for _, p := range v.Parts() {
		set, some := only[p.ID]
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

// Listed are these rows, their keys those of an order.
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
