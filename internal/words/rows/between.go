package rows

import (
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/order"
)

// Between are the live documents with a time from from on, and before before, and those without one;
// ok is false where there are more than most.
func Between(v *words.Set, from, before int64, most int) (ids []string, ok bool, err error) {
	ok = true
	err = Each(v, func(r *Row) (bool, error) {
		t, err := r.Of(order.ByTime)
		if err != nil || t != words.NoTime && (t < from || t >= before) {
			return err == nil, err
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
