package commit

import (
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal"
)

// Conditions are the caller's conditions on the version that an operation replaces, and the other options of an
// operation.
type Conditions struct {
	Version  *wal.LSN
	Absent   bool
	Modified *time.Time
	Hash     *string // sha256 of a note's content, as hexadecimal digits
	Missing  bool    // members need not exist; this is no condition on the version
	Misfit   bool    // an embedding may have any dimension; this is no condition on the version
	Number   int64   // number of the vector in an import; this is no condition on the version
	// the store's limits do not apply, because the store itself makes the change; this is no condition on the version
	Unlimited bool
	// Options for a text that was purged: ForcePurged stores it, and lifts the purge of the text; RefusePurged refuses
	// it even if config.json allows it. They are no conditions on the version.
	ForcePurged, RefusePurged bool
	Unkept                    bool    // no copy of the replaced version is kept; this is no condition on the version
	Session                   *string // the only session whose memories may be changed
	inherited                 bool    // set by inherit, and still set when the batch is prepared again
}

// Any reports whether the operation has any condition on the version.
func (c *Conditions) Any() bool {
	return c.Version != nil || c.Absent || c.Modified != nil || c.Hash != nil
}

// inherit takes the conditions of an earlier operation on the same id, which this operation replaces in the batch.
// Only one of the two has conditions.
func (c *Conditions) inherit(before *Conditions) {
	if before.Any() {
		c.Version, c.Absent, c.Modified = before.Version, before.Absent, before.Modified
		before.Version, before.Absent, before.Modified = nil, false, nil
		c.inherited = true
	}
	if c.Session == nil {
		c.Session = before.Session
	}
}

// Holds returns an error unless the conditions hold for the newest version v of id; v is 0 if there is none or it has
// expired.
func (c *Conditions) Holds(id string, v wal.LSN, updated time.Time) error {
	switch {
	case c.Absent && v != 0:
		return &errs.ConflictError{ID: id, Found: v}
	case c.Version != nil && *c.Version != v:
		return &errs.ConflictError{ID: id, Expected: *c.Version, Found: v}
	case c.Modified != nil && v != 0 && updated.After(*c.Modified):
		return &errs.ConflictError{ID: id, Found: v, Since: *c.Modified, Written: updated}
	}
	return nil
}
