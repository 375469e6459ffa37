package varve

import (
	"time"

	"github.com/varve-db/varve/internal/commit"
)

// PutOption is what a put takes: a condition, or one of AnyDimension, VectorNumber and
// AllowMissing.
type PutOption interface{ demand(*commit.Conditions) }

// Cond is a condition on a write. When it does not hold, nothing is written and
// the error is a *ConflictError, which matches ErrConflict.
type Cond interface {
	PutOption
	condition()
}

type putOption func(*commit.Conditions)

func (f putOption) demand(c *commit.Conditions) { f(c) }

type condition func(*commit.Conditions)

func (f condition) demand(c *commit.Conditions) { f(c) }
func (condition) condition()                    {}

// IfVersion holds when the newest version is this one: the Version of a Memory
// or an Assembly that was read before. 0 is the same as IfAbsent.
func IfVersion(v uint64) Cond { return condition(func(c *commit.Conditions) { c.Version = &v }) }

// IfAbsent holds when there is none of this id.
func IfAbsent() Cond { return condition(func(c *commit.Conditions) { c.Absent = true }) }

// IfUnmodifiedSince holds when it was not written after this time.
func IfUnmodifiedSince(t time.Time) Cond {
	return condition(func(c *commit.Conditions) { c.Modified = &t })
}

// AnyDimension lets an embedding have another dimension than the store's: the
// memory is stored as it is, and is not found by vector. Imports need it, and
// Vectors.Drift counts such memories (Misfits). So may the composite of an assembly whose members
// have no embedding.
func AnyDimension() PutOption { return putOption(func(c *commit.Conditions) { c.Misfit = true }) }

// AllowMissing lets an assembly name memories that are not there. Imports need it, and
// verify reports such members.
func AllowMissing() PutOption { return putOption(func(c *commit.Conditions) { c.Missing = true }) }

// VectorNumber is the number that a memory's vector has in a FAISS file elsewhere:
// it keeps it here, if it is one that this store will never give, of at least
// 1<<48, and the memory has no vector with it that is another one. Imports use it.
func VectorNumber(n int64) PutOption {
	return putOption(func(c *commit.Conditions) {
		if n >= leastForeign {
			c.Number = n
		}
	})
}

// leastForeign is beyond any position of a log: what this store gives as numbers.
const leastForeign = 1 << 48

func conditionsOf[O PutOption](list []O) commit.Conditions {
	var c commit.Conditions
	for _, f := range list {
		f.demand(&c)
	}
	return c
}
