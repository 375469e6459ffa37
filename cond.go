package varve

import (
	"time"

	"github.com/varve-db/varve/internal/commit"
)

// Cond is a condition on a write. When it does not hold, nothing is written and
// the error is a *ConflictError, which matches ErrConflict.
type Cond interface{ demand(*commit.Conditions) }

type condFunc func(*commit.Conditions)

func (f condFunc) demand(c *commit.Conditions) { f(c) }

// IfVersion holds when the newest version is this one: the Version of a Memory
// or an Assembly that was read before. 0 is the same as IfAbsent.
func IfVersion(v uint64) Cond { return condFunc(func(c *commit.Conditions) { c.Version = &v }) }

// IfAbsent holds when there is none of this id.
func IfAbsent() Cond { return condFunc(func(c *commit.Conditions) { c.Absent = true }) }

// IfUnmodifiedSince holds when it was not written after this time.
func IfUnmodifiedSince(t time.Time) Cond {
	return condFunc(func(c *commit.Conditions) { c.Modified = &t })
}

// AnyDimension lets an embedding have another dimension than the store's: the
// memory is stored as it is, and is not found by vector. It is no condition:
// imports need it, and CheckVectors lists such memories. So may the composite of an
// assembly whose members have no embedding.
func AnyDimension() Cond { return condFunc(func(c *commit.Conditions) { c.Misfit = true }) }

// VectorNumber is the number that a memory's vector has in a FAISS file elsewhere:
// it keeps it here, if it is one that this store will never give, of at least
// 1<<48, and the memory has no vector with it that is another one. It is no
// condition: imports use it.
func VectorNumber(n int64) Cond {
	return condFunc(func(c *commit.Conditions) {
		if n >= leastForeign {
			c.Number = n
		}
	})
}

// leastForeign is beyond any position of a log: what this store gives as numbers.
const leastForeign = 1 << 48

func conditionsOf(list []Cond) commit.Conditions {
	var c commit.Conditions
	for _, f := range list {
		f.demand(&c)
	}
	return c
}
