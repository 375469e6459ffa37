package commit

import (
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal"
)

// Conditions are a caller's conditions on the version that an operation replaces, and other options of the
// operation.
type Conditions struct {
	Version   *wal.LSN
	Absent    bool
	Modified  *time.Time
	Hash      *string // for a note: sha256 that its content must have, as hexadecimal digits
	Missing   bool    // option: members of an assembly need not exist
	Misfit    bool    // option: an embedding may have any dimension
	Number    int64   // option: number of the vector, which an import sets
	Unlimited bool    // option: the store's limits do not apply, because the store itself makes the change
	// Options for a text that was purged: ForcePurged stores it, and lifts the purge of the text; RefusePurged refuses
	// it even if config.json allows it.
	ForcePurged, RefusePurged bool
	Unkept                    bool    // option: no copy of the replaced version is kept
	Session                   *string // the only session whose memories may be changed
	// set by inherit: the conditions are those of an earlier operation. The field stays set when the batch is prepared
	// again
	inherited bool
}

// Any reports whether there is any condition on the version.
func (c *Conditions) Any() bool {
	return c.Version != nil || c.Absent || c.Modified != nil || c.Hash != nil
}

// absence reports whether there is a condition that a document does not exist.
func (c *Conditions) absence() bool { return c.Absent || c.Version != nil && *c.Version == 0 }

// inherit moves to c the conditions of an earlier operation on the same id, which are in before: c's operation
// replaces the earlier one in the commit. Only one of the two operations has conditions on the version. inherit also
// copies the session if c has none.
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

// Holds returns nil if the conditions hold for the newest version of a document, and an error otherwise. v is that
// version, or 0 if there is no version or the version has expired; updated is the time of the version.
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
