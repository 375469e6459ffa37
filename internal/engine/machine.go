package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// Machine returns the wal.Machine that the log is opened with.
func (eng *Engine) Machine() wal.Machine { return &machine{State: &eng.state, eng: eng} }

// machine implements wal.Machine: it applies the entries of the log to the state. The state begins with the index that
// Begin loads.
type machine struct {
	*state.State
	eng *Engine
}

// Deletion implements wal.Machine: it returns the log position at which a key was deleted.
func (m *machine) Deletion(key string) wal.LSN { return m.State.Deletion(key[0], key[1:]) }

// Begin loads the index before the log is replayed. It does not trust an index that belongs to another store, is
// truncated, or is older than the released part of the log. If no other process has the store open, Begin rebuilds such
// an index, from an older index and the log or from the files. Otherwise it returns an error. It never treats such an
// index as an empty one.
func (m *machine) Begin(ctx context.Context, start wal.Start) error {
	eng := m.eng
	var set *index.Set
	err := ErrDistrusted
	if !start.Rebuild {
		set, err = eng.loadIndex(start.UUID, start.Spilled, start.Fresh)
	}
	alone := start.Alone && !eng.env.ReadOnly
	if err == nil && set.Base() == nil {
		// The index is missing, or this is a new store, which gets an empty one at once: then a process that opens the
		// store during the first flush finds one.
		var any bool
		if any, err = eng.hasFiles(); err == nil && (alone || any) {
			err = fmt.Errorf("%s: %w", index.BaseName, fs.ErrNotExist)
		}
	}
	if err == nil {
		return eng.state.Begin(set, state.Rebuilt(set))
	}
	if set != nil {
		err = errors.Join(err, set.Release())
	}
	if env.Passing(err) {
		return eng.env.IOError("reading", filepath.Join(eng.env.Dir, index.BaseName), err)
	}
	if !alone {
		if !errors.Is(err, errs.ErrCorrupt) { // older than the log, of another log, or missing
			err = &errs.CorruptionError{Path: index.BaseName, Offset: -1, Err: err}
		}
		return fmt.Errorf("the index cannot be used: %w: close the other processes and open the store again: "+
			"the index will be rebuilt from the files", err)
	}
	set, from, n, rerr := eng.host.RebuildIndex(ctx, &start)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	if start.Gone != 0 { // why the index was not trusted follows from that
		err = &errs.HistoryGoneError{Begin: start.Gone}
	}
	if n > 0 || !start.Fresh {
		eng.opened.Remade = &remadeIndex{Why: err, From: from, Memories: n}
		eng.env.Logger.Warn("the index was rebuilt", "from", Origin(from), "why", err, "memories", n)
		eng.env.Event(env.Event{Kind: env.EventRebuilt, Path: index.BaseName, Err: err, Count: n,
			Note: "from " + Origin(from)})
	}
	made := n > 0 || !start.Fresh // an empty index for a new log has nothing in excess
	return eng.state.Begin(set, from == "" && made || from != "" && state.Rebuilt(set))
}

// Agrees implements wal.Machine: it returns an error if the index belongs to another log.
func (m *machine) Agrees(end wal.Mark, chain func(wal.LSN) (uint64, bool)) error {
	set := m.State.Set()
	if set == nil {
		return nil
	}
	defer set.Release()
	return state.Agrees(set, end.LSN, chain)
}

// hasFiles reports whether the folder of any kind has a file whose name is that of a document.
func (eng *Engine) hasFiles() (bool, error) {
	for _, k := range eng.kinds.All {
		if eng.lacks(k.Kind) {
			continue
		}
		names, err := k.Names()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if k.HasDocuments(names) {
			return true, nil
		}
	}
	return false, nil
}
