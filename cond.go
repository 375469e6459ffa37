package varve

import (
	"time"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/wal"
)

// Cond is a condition on a write. When it does not hold, nothing is written and
// the error is a *ConflictError, which matches ErrConflict.
type Cond interface{ demand(*conditions) }

type condFunc func(*conditions)

func (f condFunc) demand(c *conditions) { f(c) }

type conditions struct {
	version   *wal.LSN
	absent    bool
	modified  *time.Time
	missing   bool    // members need not be there; no condition
	misfit    bool    // an embedding may have any dimension; no condition
	number    int64   // that the vector brings along; no condition
	unlimited bool    // what the store itself changes is not held to its limits; no condition
	session   *string // the only one whose memories may be touched
	inherited bool    // from an operation before: a batch that is prepared again finds it so
}

// IfVersion holds when the newest version is this one: the Version of a Memory
// or an Assembly that was read before. 0 is the same as IfAbsent.
func IfVersion(v uint64) Cond { return condFunc(func(c *conditions) { c.version = &v }) }

// IfAbsent holds when there is none of this id.
func IfAbsent() Cond { return condFunc(func(c *conditions) { c.absent = true }) }

// IfUnmodifiedSince holds when it was not written after this time.
func IfUnmodifiedSince(t time.Time) Cond { return condFunc(func(c *conditions) { c.modified = &t }) }

// AnyDimension lets an embedding have another dimension than the store's: the
// memory is stored as it is, and is not found by vector. It is no condition:
// imports need it, and CheckVectors lists such memories. So may the composite of an
// assembly whose members have no embedding.
func AnyDimension() Cond { return condFunc(func(c *conditions) { c.misfit = true }) }

// VectorNumber is the number that a memory's vector has in a FAISS file elsewhere:
// it keeps it here, if it is one that this store will never give, of at least
// 1<<48, and the memory has no vector with it that is another one. It is no
// condition: imports use it.
func VectorNumber(n int64) Cond {
	return condFunc(func(c *conditions) {
		if n >= leastForeign {
			c.number = n
		}
	})
}

// leastForeign is beyond any position of a log: what this store gives as numbers.
const leastForeign = 1 << 48

func conditionsOf(list []Cond) conditions {
	var c conditions
	for _, f := range list {
		f.demand(&c)
	}
	return c
}

func (c *conditions) any() bool { return c.version != nil || c.absent || c.modified != nil }

// inherit takes over what was demanded by an operation on the same id that this one
// supersedes in a batch. Only one of the two demands anything.
func (c *conditions) inherit(before *conditions) {
	if before.any() {
		c.version, c.absent, c.modified = before.version, before.absent, before.modified
		before.version, before.absent, before.modified = nil, false, nil
		c.inherited = true
	}
	if c.session == nil {
		c.session = before.session
	}
}

// holds judges the conditions against the newest version of id, 0 when there is none
// (or one whose time is over).
func (c *conditions) holds(id string, v wal.LSN, updated time.Time) error {
	switch {
	case c.absent && v != 0:
		return &errs.ConflictError{ID: id, Found: v}
	case c.version != nil && *c.version != v:
		return &errs.ConflictError{ID: id, Expected: *c.version, Found: v}
	case c.modified != nil && v != 0 && updated.After(*c.modified):
		return &errs.ConflictError{ID: id, Found: v, Since: *c.modified, Written: updated}
	}
	return nil
}
