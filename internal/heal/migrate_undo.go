package heal

import (
	"context"
	"errors"

	"github.com/varve-db/varve/repair"
)

// moveUndo lets what can be undone in the old place be undone in the new one: the
// manifests there are told of the folder that they are in now. The copies in the old place
// stay as they are. It comes after the bytes were compared; a migration that is cut copies
// them again.
func (m *migrate) moveUndo(ctx context.Context) error {
	o := keys{fs: m.fs, dir: m.s.StateDir}
	var nokey *keyError
	was, err := o.markOf(m.s.From, false)
	if errors.As(err, &nokey) {
		return nil // none can be undone
	}
	if err != nil {
		return err
	}
	now, err := o.markOf(m.s.To, false)
	if errors.As(err, &nokey) {
		return nil
	}
	if err != nil {
		return err
	}
	ids, err := Repairs(m.fs, m.s.To)
	for _, id := range ids {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		_, rerr := readManifest(m.fs, m.s.To, id, was)
		var other *repair.UndoForeign
		if errors.As(rerr, &other) {
			continue
		}
		if err = rerr; err == nil {
			err = was.more(m.fs, m.s.To, id, change{Moved: now.folder})
		}
	}
	return err
}
