package commit

import (
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal"
)

// Conditions are what is demanded of the version that an operation replaces, and what else
// a caller says of one operation.
type Conditions struct {
	Version   *wal.LSN
	Absent    bool
	Modified  *time.Time
	Hash      *string // of the content of a note, sha256 as hexadecimal digits
	Missing   bool    // members need not be there; no condition
	Misfit    bool    // an embedding may have any dimension; no condition
	Number    int64   // that the vector brings along; no condition
	Unlimited bool    // what the store itself changes is not held to its limits; no condition
	// A text that was purged: ForcePurged stores it, and has it count as any other text from then on; RefusePurged
	// refuses it also where config.json does not; no conditions
	ForcePurged, RefusePurged bool
	Unkept                    bool    // of what it replaces no copy is to be kept; no condition
	Session                   *string // the only one whose memories may be touched
	inherited                 bool    // from an operation before: a batch that is prepared again finds it so
}

// Any reports whether something is demanded.
func (c *Conditions) Any() bool {
	return c.Version != nil || c.Absent || c.Modified != nil || c.Hash != nil
}

// inherit takes over what was demanded by an operation on the same id that this one
// supersedes in a batch. Only one of the two demands anything.
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

// Holds judges the conditions against the newest version of id, 0 when there is none
// (or one whose time is over).
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
