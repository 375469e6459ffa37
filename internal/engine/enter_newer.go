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

// newerVectors refuses a store whose vectors a newer program has written, as one whose
// index it has: they are derived, but this program could not write them on, and what it put would
// hold the log back forever. Nothing was changed yet.
func (eng *Engine) newerVectors() error {
	for _, name := range []string{vector.BaseMapping, vector.DeltaMapping} {
		t, err := table.Open(eng.env.FS, eng.env.Dir, name, vector.Schema())
		if errors.Is(err, errs.ErrNewerFormat) {
			return err
		}
		if err != nil {
			continue // code that needs them says so
		}
		if err := t.Release(); err != nil {
			return err
		}
	}
	return nil
}

// NamedUUID returns the UUID of the store that the index names.
func (eng *Engine) NamedUUID() (id [16]byte, ok bool) {
	t, err := table.Open(eng.env.FS, eng.env.Dir, index.BaseName, index.Schema())
	if err != nil {
		return id, false // missing, or not to be read: then it names nothing
	}
	id, err = uuid.Parse(t.Meta().Store)
	return id, errors.Join(err, t.Release()) == nil
}

// HighestKnown is the highest position that any index names, for a log that
// must be made new: its positions must not mean two things.
func (eng *Engine) HighestKnown() (wal.LSN, error) {
	var highest wal.LSN
	for _, name := range []string{index.BaseName, index.DeltaName} {
		t, err := table.Open(eng.env.FS, eng.env.Dir, name, index.Schema())
		if err != nil {
			continue // missing, or not to be read: then it names nothing
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
