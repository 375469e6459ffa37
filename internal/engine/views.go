package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/wal"
)

// Begin loads the index for the log's replay. An index that cannot be trusted
// (of another store, cut, behind what was released) is made again, from an older
// one and the log or from the files, by whoever is alone; it is never taken for
// an empty one.
func (eng *Engine) Begin(ctx context.Context, start wal.Start) error {
	var set *index.Set
	err := ErrDistrusted
	if !start.Rebuild {
		set, err = eng.loadIndex(start.UUID, start.Spilled, start.Fresh)
	}
	alone := start.Alone && !eng.Env.ReadOnly
	if err == nil && set.Base() == nil {
		// The index is gone, or this is a new store, which gets an empty one at once:
		// then whoever joins in the middle of the first flush finds one.
		var any bool
		if any, err = eng.hasFiles(); err == nil && (alone || any) {
			err = fmt.Errorf("%s: %w", index.BaseName, fs.ErrNotExist)
		}
	}
	if err == nil {
		return eng.State.Begin(set, rebuilt(set))
	}
	if set != nil {
		err = errors.Join(err, set.Release())
	}
	if env.Passing(err) {
		return eng.Env.IOError("reading", filepath.Join(eng.Env.Dir, index.BaseName), err)
	}
	if !alone {
		if !errors.Is(err, errs.ErrCorrupt) { // older than the log, of another one, or gone
			err = &errs.CorruptionError{Path: index.BaseName, Offset: -1, Err: err}
		}
		return fmt.Errorf("the index cannot be used: %w: close the other processes and open the store again: it will be made anew from the files", err)
	}
	set, from, n, rerr := eng.RemakeIndex(ctx, &start)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	if n > 0 || !start.Fresh {
		eng.Opened.Remade = &remadeIndex{Why: err, From: from, Memories: n}
		eng.Env.Logger.Warn("the index was made again", "from", Origin(from), "why", err, "memories", n)
		eng.Env.Event(env.Event{Kind: env.EventRebuilt, Path: index.BaseName, Err: err, Count: n, Note: "from " + Origin(from)})
	}
	made := n > 0 || !start.Fresh // an empty one for a new log knows nothing too much
	return eng.State.Begin(set, from == "" && made || from != "" && rebuilt(set))
}

// Origin is what an index was made from, in words.
func Origin(from string) string {
	if from == "" {
		return "the files"
	}
	return from + " and the log"
}

var ErrDistrusted = errors.New("it is not of this log")

// Agrees is wal.Options.Agrees: an index that knows more than the log does, or
// whose log went another way, is of another life of this folder.
func (eng *Engine) Agrees(end wal.Mark, chain func(wal.LSN) (uint64, bool)) error {
	set := eng.State.Set()
	if set == nil || set.Base() == nil {
		return nil
	}
	defer set.Release()
	if set.LSN() > end.LSN {
		return &errs.CorruptionError{Path: index.BaseName, Offset: -1, Err: fmt.Errorf("it covers the log up to %d, which ends at %d", set.LSN(), end.LSN)}
	}
	was, ok := index.Chain(set)
	if is, known := chain(set.LSN()); ok && known && is != was {
		return fmt.Errorf("%s was written for a log that differs from this one before %d", index.BaseName, set.LSN())
	}
	return nil
}

// rebuilt says whether a set was made from the files, by this process or by one
// that was killed before it wrote another: it may know what came after its lsn.
// All its lines then have the version that rebuildIndex gives, which no frame has.
func rebuilt(set *index.Set) bool {
	for _, section := range []int{index.Memories, index.Assemblies} {
		for e, err := range set.Range(section, index.Span{}) {
			if err != nil {
				return false
			}
			if line, err := index.ParseLine(e.Value); err == nil && line.Version == set.LSN()-1 {
				return true
			}
			break
		}
	}
	return false
}

// hasFiles says whether there is any document.
func (eng *Engine) hasFiles() (bool, error) {
	for _, k := range eng.Kinds.All {
		names, err := k.Names()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if HasDocuments(names) {
			return true, nil
		}
	}
	return false, nil
}

// loadIndex maps the index as of now.
func (eng *Engine) loadIndex(id uuid.UUID, spilled wal.LSN, fresh bool) (*index.Set, error) {
	want := index.Want{Store: id.String(), Spilled: spilled}
	if fresh {
		want.Start = spilled // nothing was spilled yet
	}
	prev := eng.State.Set()
	if prev != nil {
		defer prev.Release()
	}
	set, err := index.Load(eng.Env.FS, eng.Env.Dir, want, prev)
	if err != nil && env.Passing(err) {
		err = eng.Env.IOError("mapping", filepath.Join(eng.Env.Dir, index.BaseName), err)
	}
	return set, err
}

// Sight brings this process up to what every process has made durable.
func (eng *Engine) Sight(ctx context.Context) error {
	if err := eng.MovedSince(); err != nil {
		return err
	}
	if err := eng.Log.CatchUp(ctx); err != nil {
		return err
	}
	eng.RemapDue()
	return nil
}

// RemapDue maps the index that another process has written, if one has.
func (eng *Engine) RemapDue() {
	if eng.Log.Spilled() > eng.State.From() || eng.Log.Remade() != eng.Remade.Load() {
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
	return eng.remap()
}

func (eng *Engine) remap() error {
	remade := eng.Log.Remade()
	set, err := eng.loadIndex(eng.Log.UUID(), eng.Log.Spilled(), false)
	if err == nil {
		err = eng.State.Swap(set)
	}
	if err != nil {
		eng.Env.Logger.Debug("mapping a newer index", "err", err)
		return err
	}
	eng.Remade.Store(remade)
	eng.Log.LetGo()
	return nil
}

// Healed says, of a look-up that met damage in the index when this had been
// replaced so many times, that another one is mapped by now: somebody has healed
// it, and may have been killed before he could say so.
func (eng *Engine) Healed(swaps uint64) bool {
	eng.refreshing.Lock()
	defer eng.refreshing.Unlock()
	return eng.State.Swaps() != swaps || !eng.stands() && eng.remap() == nil
}

// KeepUp maps the index that stands in the folder, before another one is made of
// the one that is mapped; flush.lock is held. Where it cannot be used the one that
// is mapped goes on.
func (eng *Engine) KeepUp() {
	eng.refreshing.Lock()
	defer eng.refreshing.Unlock()
	if !eng.stands() {
		_ = eng.remap()
	}
}

// stands says whether the index that is mapped is the one in the folder.
func (eng *Engine) stands() bool {
	set := eng.State.Set()
	if set == nil {
		return true
	}
	defer set.Release()
	return set.Stands(eng.Env.FS, eng.Env.Dir)
}

// Target is where an index is written to.
func (eng *Engine) Target(store uuid.UUID, at wal.Mark) index.Target {
	return index.Target{
		FS: eng.Env.FS, Dir: eng.Env.Dir, Temp: filepath.Join(eng.Env.Dir, "tmp", "index."+eng.Token), Perm: eng.Env.FileMode,
		Store: store.String(), LSN: at.LSN, Chain: at.Sum, Now: eng.Env.Clock(), Model: eng.State.ModelBefore(at.LSN),
	}
}

// Tables are the files of an index: the same pointers are the same files.
type Tables [2]*table.Table

// TablesOf names the tables of an index.
func TablesOf(set *index.Set) Tables { return Tables{set.Base(), set.Delta()} }
