package migrate

import (
	"context"
	"errors"

	"github.com/varve-db/varve/internal/journal"
	"github.com/varve-db/varve/repair"
)

// moveUndo lets what can be undone in the old place be undone in the new one: the
// manifests there are told of the folder that they are in now. The copies in the old place
// stay as they are. It comes after the bytes were compared; a migration that is cut copies
// them again.
func (m *migrate) moveUndo(ctx context.Context) error {
	o := journal.Keys{FS: m.fs, Dir: m.s.StateDir}
	var nokey *journal.NoKey
	was, err := o.Mark(m.s.From, false)
	if errors.As(err, &nokey) {
		return nil // none can be undone
	}
	if err != nil {
		return err
	}
	now, err := o.Mark(m.s.To, false)
	if errors.As(err, &nokey) {
		return nil
	}
	if err != nil {
		return err
	}
	ids, err := journal.Repairs(m.fs, m.s.To)
	for _, id := range ids {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		_, rerr := journal.Read(m.fs, m.s.To, id, was)
		var other *repair.UndoForeign
		if errors.As(rerr, &other) {
			continue
		}
		if err = rerr; err == nil {
			err = was.Append(m.fs, m.s.To, id, journal.Change{Moved: now.Folder})
		}
	}
	return err
}
