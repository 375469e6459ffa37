package engine

import (
	"errors"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// newerVectors returns an error if the vector files of the store were written by a newer program. Vectors are derived
// data, but this program must not write to such a store: it could not update the vector files, so the log could never
// release the entries that this program adds. An index of a newer program is refused for the same reason. newerVectors
// is called before anything in the store is changed.
func (eng *Engine) newerVectors() error {
	for _, name := range []string{vector.BaseMapping, vector.DeltaMapping} {
		t, err := table.Open(eng.env.FS, eng.env.Dir, name, vector.Schema())
		if errors.Is(err, errs.ErrNewerFormat) {
			return err
		}
		if err != nil {
			continue // code that needs them reports it
		}
		if err := t.Release(); err != nil {
			return err
		}
	}
	return nil
}

// NamedUUID returns the UUID of the store that is recorded in the index file. It returns false if the index is missing
// or unreadable.
func (eng *Engine) NamedUUID() (id [16]byte, ok bool) {
	t, err := table.Open(eng.env.FS, eng.env.Dir, index.BaseName, index.Schema())
	if err != nil {
		return id, false // missing or unreadable: it names no store
	}
	id, err = uuid.Parse(t.Meta().Store)
	return id, errors.Join(err, t.Release()) == nil
}

// HighestKnown returns the highest log position that is named by a file of the store outside of the log: an index, a
// backup of an index, a vector file or the checkpoint. If the log must be recreated, the new log begins above this
// position, so that no position is used for two entries.
func (eng *Engine) HighestKnown() (wal.LSN, error) {
	var highest wal.LSN
	for _, name := range []string{index.BaseName, index.DeltaName} {
		t, err := table.Open(eng.env.FS, eng.env.Dir, name, index.Schema())
		if err != nil {
			continue // missing or unreadable: it names no position
		}
		highest = max(highest, t.Meta().LSN)
		if err := t.Release(); err != nil {
			return 0, err
		}
	}
	for _, name := range []string{vector.BaseMapping, vector.DeltaMapping} {
		t, err := table.Open(eng.env.FS, eng.env.Dir, name, vector.Schema())
		if err != nil {
			continue
		}
		highest = max(highest, t.Meta().LSN)
		if err := t.Release(); err != nil {
			return 0, err
		}
	}
	backups, err := index.Backups(eng.env.FS, eng.env.Dir)
	if err != nil {
		return 0, eng.env.IOError("reading", filepath.Join(eng.env.Dir, index.BackupsDir), err)
	}
	for _, b := range backups {
		highest = max(highest, b.LSN)
	}
	if c, err := wal.ReadCheckpoint(eng.env.FS, eng.env.Dir); err == nil {
		highest = max(highest, c.Attested.LSN)
	}
	return highest, nil
}
