package commit

import (
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal"
)

// Conditions are the caller's conditions on the version that an operation replaces, and the other options of an
// operation.
type Conditions struct {
	Version   *wal.LSN
	Absent    bool
	Modified  *time.Time
	Hash      *string // of a note's content: sha256 as hexadecimal digits
	Missing   bool    // members need not exist; no condition
	Misfit    bool    // an embedding may have any dimension; no condition
	Number    int64   // the vector's number, which an import brings; no condition
	Unlimited bool    // the store's limits do not apply, because the store itself makes the change; no condition
	// For a text that was purged: ForcePurged stores it, and lifts the purge of the text; RefusePurged refuses it even
	// if config.json allows it. No conditions.
	ForcePurged, RefusePurged bool
	Unkept                    bool    // no copy of the replaced version is kept; no condition
	Session                   *string // the only session whose memories may be changed
	inherited                 bool    // set by inherit, and still set when the batch is prepared again
}

// Any reports whether there is any condition on the version.
func (c *Conditions) Any() bool {
	return c.Version != nil || c.Absent || c.Modified != nil || c.Hash != nil
}

// inherit takes over the conditions of an earlier operation on the same id, which this one supersedes in the batch.
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

// Holds returns an error unless the conditions hold for the newest version of id, 0 if there is none or it has expired.
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
