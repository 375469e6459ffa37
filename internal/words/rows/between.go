package rows

import "github.com/varve-db/varve/internal/words"

// Between are the live documents with a time from from on, and before before, and those without one;
// ok is false where there are more than most.
func Between(v *words.Set, from, before int64, most int) (ids []string, ok bool, err error) {
	ok = true
	err = Each(v, func(r *Row) (bool, error) {
		t, err := r.Time()
		if err != nil || t != words.NoTime && (t < from || t >= before) {
			return err == nil, err
		}
		if ok = len(ids) < most; ok {
			ids = append(ids, string(r.ID))
		}
		return ok, nil
	})
	if err != nil || !ok {
		return nil, false, err
	}
	return ids, true, nil
}
