package varve

import (
	"time"

	"github.com/varve-db/varve/internal/commit"
)

// PutOption is an option of a put: a condition, or one of AnyDimension, VectorNumber,
// AllowMissing, ForcePurged and RefusePurged.
type PutOption interface{ demand(*commit.Conditions) }

// Cond is a condition on a write. If the condition does not hold, nothing is written and the error is a
// *ConflictError, which matches ErrConflict.
type Cond interface {
	PutOption
	condition()
}

type putOption func(*commit.Conditions)

func (f putOption) demand(c *commit.Conditions) { f(c) }

type condition func(*commit.Conditions)

func (f condition) demand(c *commit.Conditions) { f(c) }
func (condition) condition()                    {}

// IfVersion holds if v is the newest version of the document. v is the Version of a Memory or an Assembly that was read
// before. IfVersion(0) is the same as IfAbsent.
func IfVersion(v uint64) Cond { return condition(func(c *commit.Conditions) { c.Version = &v }) }

// IfAbsent holds if no document has this id.
func IfAbsent() Cond { return condition(func(c *commit.Conditions) { c.Absent = true }) }

// IfUnmodifiedSince holds if the document was not written after t.
func IfUnmodifiedSince(t time.Time) Cond {
	return condition(func(c *commit.Conditions) { c.Modified = &t })
}

// AnyDimension accepts an embedding whose dimension is not the store's. The memory is stored unchanged, and searches by
// vector do not find it. Imports need this option. Vectors.Drift counts such memories as Misfits. The option also
// applies to the composite of an assembly whose members have no embedding.
func AnyDimension() PutOption { return putOption(func(c *commit.Conditions) { c.Misfit = true }) }

// AllowMissing permits an assembly to have members that do not exist. Imports need this option. Verify reports such
// members.
func AllowMissing() PutOption { return putOption(func(c *commit.Conditions) { c.Missing = true }) }

// ForcePurged stores the text of a document even if that text was purged. The store then forgets that this text was
// purged. Without this option, a store whose config.json sets block_purged refuses the text with ErrPurged.
func ForcePurged() PutOption { return putOption(func(c *commit.Conditions) { c.ForcePurged = true }) }

// RefusePurged makes a put fail with ErrPurged if its text was purged, even if block_purged in config.json is false.
// Imports use this option.
func RefusePurged() PutOption { return putOption(func(c *commit.Conditions) { c.RefusePurged = true }) }

// VectorNumber sets the number of the memory's vector to n, the number that the vector had in an external FAISS file.
// The vector gets n if n is at least 1<<48 (this store never assigns such a number by itself) and the memory has no
// vector with another number. Imports use this option.
func VectorNumber(n int64) PutOption {
	return putOption(func(c *commit.Conditions) {
		if n >= leastForeign {
			c.Number = n
		}
	})
}

// leastForeign is the smallest vector number that this store never assigns: it is larger than any position of a log.
const leastForeign = 1 << 48

func conditionsOf[O PutOption](list []O) commit.Conditions {
	var c commit.Conditions
	for _, f := range list {
		f.demand(&c)
	}
	return c
}
