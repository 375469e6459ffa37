package project

import (
	"context"
	"errors"

	"github.com/varve-db/varve"
)

// mergedAtOnce is how many memories Merge changes in one commit.
const mergedAtOnce = 200

// Count returns the number of memories of each project in a store; that of the shared part is under "". It reads all
// memories.
func Count(ctx context.Context, st *varve.Store) (map[string]int, error) {
	all, unread := map[string]int{}, []error(nil)
	for m, err := range st.Memories(ctx) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			unread = append(unread, err)
			continue
		}
		all[Of(&m)]++
	}
	return all, errors.Join(unread...)
}

// Merge gives the memories of one project to another, or to the shared part if into is "", and returns their number.
// It is several commits; if it is interrupted, calling it again completes it.
func Merge(ctx context.Context, st *varve.Store, from, into string) (n int, err error) {
	if from == "" || from == into {
		return 0, varve.ErrInvalid
	}
	var ids []string
	for m, err := range st.Memories(ctx) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err == nil && Of(&m) == from {
			ids = append(ids, m.ID)
		}
	}
	target := New(st, into, nil)
	for len(ids) > 0 {
		some := ids[:min(len(ids), mergedAtOnce)]
		done := 0
		err := st.Transact(ctx, func(tx *varve.Tx) error {
			done = 0
			for _, id := range some {
				m, err := tx.Get(id)
				if errors.Is(err, varve.ErrNotFound) || err == nil && Of(&m) != from {
					continue
				}
				if err == nil {
					target.Place(&m, into == "")
					_, err = tx.Put(m)
				}
				if err != nil {
					return err
				}
				done++
			}
			return nil
		})
		if err != nil {
			return n, err
		}
		n, ids = n+done, ids[len(some):]
	}
	return n, nil
}
