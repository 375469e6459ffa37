package rows

import (
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/bitset"
	"github.com/varve-db/varve/internal/words/order"
)

// Bounds are from a key of an order on, and before another.
type Bounds struct {
	By           order.Order
	From, Before int64
}

// Between are the live documents within some bounds, and those that have no time where that is asked for;
// ok is false where there are more than most.
func Between(v *words.Set, in []Bounds, most int) (ids []string, ok bool, err error) {
	ok = true
	err = Each(v, func(r *Row) (bool, error) {
		for _, b := range in {
			key, err := r.Of(b.By)
			if err != nil || key != words.NoTime && (key < b.From || key >= b.Before) {
				return err == nil, err
			}
		}
		if ok = len(ids) < most; !ok {
			return false, nil
		}
		id, err := r.Named()
		ids = append(ids, string(id))
		return true, err
	})
	if err != nil || !ok {
		return nil, false, err
	}
	return ids, true, nil
}

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
