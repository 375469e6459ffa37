package varve

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

// begin loads the index for the log's replay. An index that cannot be trusted
// (of another store, cut, behind what was released) is made again, from an older
// one and the log or from the files, by whoever is alone; it is never taken for
// an empty one.
func (eng *engine) begin(ctx context.Context, start wal.Start) error {
	var set *index.Set
	err := errDistrusted
	if !start.Rebuild {
		set, err = eng.loadIndex(start.UUID, start.Spilled, start.Fresh)
	}
	alone := start.Alone && !eng.env.ReadOnly
	if err == nil && set.Base() == nil {
		// The index is gone, or this is a new store, which gets an empty one at once:
		// then whoever joins in the middle of the first flush finds one.
		var any bool
		if any, err = eng.hasFiles(); err == nil && (alone || any) {
			err = fmt.Errorf("%s: %w", index.BaseName, fs.ErrNotExist)
		}
	}
	if err == nil {
		return eng.state.Begin(set, rebuilt(set))
	}
	if set != nil {
		err = errors.Join(err, set.Release())
	}
	if env.Passing(err) {
		return eng.env.IOError("reading", filepath.Join(eng.env.Dir, index.BaseName), err)
	}
	if !alone {
		if !errors.Is(err, errs.ErrCorrupt) { // older than the log, of another one, or gone
			err = &errs.CorruptionError{Path: index.BaseName, Offset: -1, Err: err}
		}
		return fmt.Errorf("the index cannot be used: %w: close the other processes and open the store again: it will be made anew from the files", err)
	}
	set, from, n, rerr := eng.remakeIndex(ctx, &start)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	if n > 0 || !start.Fresh {
		eng.opened.remade = &remadeIndex{why: err, from: from, memories: n}
		eng.env.Logger.Warn("the index was made again", "from", origin(from), "why", err, "memories", n)
		eng.env.Event(env.Event{Kind: env.EventRebuilt, Path: index.BaseName, Err: err, Count: n, Note: "from " + origin(from)})
	}
	made := n > 0 || !start.Fresh // an empty one for a new log knows nothing too much
	return eng.state.Begin(set, from == "" && made || from != "" && rebuilt(set))
}

// origin is what an index was made from, in words.
func origin(from string) string {
	if from == "" {
		return "the files"
	}
	return from + " and the log"
}

var errDistrusted = errors.New("it is not of this log")

// agrees is wal.Options.Agrees: an index that knows more than the log does, or
// whose log went another way, is of another life of this folder.
func (eng *engine) agrees(end wal.Mark, chain func(wal.LSN) (uint64, bool)) error {
	set := eng.state.Set()
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
func (eng *engine) hasFiles() (bool, error) {
	for _, k := range eng.kinds.all {
		names, err := k.Names()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if hasDocuments(names) {
			return true, nil
		}
	}
	return false, nil
}

// loadIndex maps the index as of now.
func (eng *engine) loadIndex(id uuid.UUID, spilled wal.LSN, fresh bool) (*index.Set, error) {
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

// sight brings this process up to what every process has made durable.
func (eng *engine) sight(ctx context.Context) error {
	if err := eng.movedSince(); err != nil {
		return err
	}
	if err := eng.log.CatchUp(ctx); err != nil {
		return err
	}
	eng.remapDue()
	return nil
}

// remapDue maps the index that another process has written, if one has.
func (eng *engine) remapDue() {
	if eng.log.Spilled() > eng.state.From() || eng.log.Remade() != eng.remade.Load() {
		_ = eng.refresh() // the old one and the overlay still say the same
	}
}

// refresh maps the index that another process has written. When that fails the
// old one and the overlay still say the same.
func (eng *engine) refresh() error {
	if !eng.refreshing.TryLock() {
		return nil // somebody is at it
	}
	defer eng.refreshing.Unlock()
	return eng.remap()
}

func (eng *engine) remap() error {
	remade := eng.log.Remade()
	set, err := eng.loadIndex(eng.log.UUID(), eng.log.Spilled(), false)
	if err == nil {
		err = eng.state.Swap(set)
	}
	if err != nil {
		eng.env.Logger.Debug("mapping a newer index", "err", err)
		return err
	}
	eng.remade.Store(remade)
	eng.log.LetGo()
	return nil
}

// healed says, of a look-up that met damage in the index when this had been
// replaced so many times, that another one is mapped by now: somebody has healed
// it, and may have been killed before he could say so.
func (eng *engine) healed(swaps uint64) bool {
	eng.refreshing.Lock()
	defer eng.refreshing.Unlock()
	return eng.state.Swaps() != swaps || !eng.stands() && eng.remap() == nil
}

// keepUp maps the index that stands in the folder, before another one is made of
// the one that is mapped; flush.lock is held. Where it cannot be used the one that
// is mapped goes on.
func (eng *engine) keepUp() {
	eng.refreshing.Lock()
	defer eng.refreshing.Unlock()
	if !eng.stands() {
		_ = eng.remap()
	}
}

// stands says whether the index that is mapped is the one in the folder.
func (eng *engine) stands() bool {
	set := eng.state.Set()
	if set == nil {
		return true
	}
	defer set.Release()
	return set.Stands(eng.env.FS, eng.env.Dir)
}

// target is where an index is written to.
func (eng *engine) target(store uuid.UUID, at wal.Mark) index.Target {
	return index.Target{
		FS: eng.env.FS, Dir: eng.env.Dir, Temp: filepath.Join(eng.env.Dir, "tmp", "index."+eng.token), Perm: eng.env.FileMode,
		Store: store.String(), LSN: at.LSN, Chain: at.Sum, Now: eng.env.Clock(), Model: eng.state.ModelBefore(at.LSN),
	}
}

// tables are the files of an index: the same pointers are the same files.
type tables [2]*table.Table

func tablesOf(set *index.Set) tables { return tables{set.Base(), set.Delta()} }
