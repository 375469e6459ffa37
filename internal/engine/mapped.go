package engine

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// Origin is what an index was made from, in words.
func Origin(from string) string {
	if from == "" {
		return "the files"
	}
	return from + " and the log"
}

// ErrDistrusted is why an index that could be read is not used.
var ErrDistrusted = errors.New("it is not of this log")

// loadIndex maps the index as of now.
func (eng *Engine) loadIndex(id uuid.UUID, spilled wal.LSN, fresh bool) (*index.Set, error) {
	want := index.Want{Store: id.String(), Spilled: spilled}
	if fresh {
		want.Start = spilled // nothing was spilled yet
	}
	prev := eng.state.Set()
	if prev != nil {
		defer prev.Release()
	}
	set, err := index.Load(eng.env.FS, eng.env.Dir, want, prev)
	if err != nil && env.Passing(err) {
		err = eng.env.IOError("mapping", filepath.Join(eng.env.Dir, index.BaseName), err)
	}
	return set, err
}

// CatchUp brings this process up to what every process has made durable.
func (eng *Engine) CatchUp(ctx context.Context) error {
	if err := eng.MovedSince(); err != nil {
		return err
	}
	if err := eng.log.CatchUp(ctx); err != nil {
		return err
	}
	eng.RemapDue()
	return nil
}

// RemapDue maps the index that another process has written, if one has.
func (eng *Engine) RemapDue() {
	if eng.log.Folder().Replaced() != nil {
		return // the index at its place may be that of another store
	}
	if eng.log.Spilled() > eng.state.From() || eng.log.Notes().IndexRebuilds() != eng.remade.Load() {
		_ = eng.Refresh() // the old one and the overlay still say the same
	}
}

// Refresh maps the index that another process has written. When that fails the
// old one and the overlay still say the same.
func (eng *Engine) Refresh() error {
	if !eng.refreshing.TryLock() {
		return nil // somebody is at it
	}
	defer eng.refreshing.Unlock()
	return eng.remap(false)
}

// remap maps the index that is in its place; held against the log, none of another life of this folder.
func (eng *Engine) remap(held bool) error {
	remade := eng.log.Notes().IndexRebuilds()
	set, err := eng.loadIndex(eng.log.UUID(), eng.log.Spilled(), false)
	if err == nil && held {
		if err = state.Agrees(set, eng.log.Durable(), eng.chain); err != nil {
			_ = set.Release()
		}
	}
	if err == nil {
		err = eng.state.Swap(set)
	}
	if err != nil {
		eng.env.Logger.Debug("mapping a newer index", "err", err)
		return err
	}
	eng.remade.Store(remade)
	eng.log.Archive().CloseReleased()
	return nil
}

// chain is the log's hash at a position; 0 where no entry begins there, nor goes on from there in the next segment.
func (eng *Engine) chain(at wal.LSN) (uint64, bool) {
	if m := eng.log.AppliedMark(); at >= m.LSN {
		return m.Sum, at == m.LSN
	}
	m, err := eng.log.MarkBefore(context.Background(), at)
	if size := eng.log.SegmentSize(); errors.Is(err, errs.ErrCorrupt) {
		m, _ = eng.log.MarkBefore(context.Background(), (at/size+1)*size)
		return m.Sum, true
	}
	return m.Sum, err == nil
}

// Healed says, of a look-up that met damage in the index when this had been
// replaced so many times, that another one is mapped by now: somebody has healed
// it, and may have been killed before he could say so.
func (eng *Engine) Healed(swaps uint64) bool {
	eng.refreshing.Lock()
	defer eng.refreshing.Unlock()
	return eng.state.Swaps() != swaps || !eng.stands() && eng.remap(false) == nil
}

// KeepUp maps the index that stands in the folder, before another one is made of the one that is mapped,
// and before anything is put into files: what it covers counts as put there. Where it cannot be used, or
// is not of this log, the one that is mapped goes on.
func (eng *Engine) KeepUp(_ *wal.Held) error {
	eng.refreshing.Lock()
	defer eng.refreshing.Unlock()
	if eng.stands() {
		return nil
	}
	return eng.remap(true)
}

// stands reports whether the index that is mapped is the one in the folder.
func (eng *Engine) stands() bool {
	set := eng.state.Set()
	if set == nil {
		return true
	}
	defer set.Release()
	return set.Stands(eng.env.FS, eng.env.Dir)
}

// Target is where an index is written to.
func (eng *Engine) Target(store uuid.UUID, at wal.Mark) index.Target {
	return index.Target{
		FS: eng.env.FS, Dir: eng.env.Dir, Temp: filepath.Join(eng.env.Dir, "tmp", "index."+eng.token), Perm: eng.env.FileMode,
		Store: store.String(), LSN: at.LSN, Chain: at.Sum, Now: eng.env.Clock(), Model: eng.state.ModelBefore(at.LSN),
	}
}

// Tables are the files of an index: the same pointers are the same files.
type Tables [2]*table.Table

// TablesOf names the tables of an index.
func TablesOf(set *index.Set) Tables { return Tables{set.Base(), set.Delta()} }
