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
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// begin loads the index for the log's replay. An index that cannot be trusted
// (of another store, cut, behind what was released) is made again, from an older
// one and the log or from the files, by whoever is alone; it is never taken for
// an empty one.
func (st *Store) begin(ctx context.Context, start wal.Start) error {
	var set *index.Set
	err := errDistrusted
	if !start.Rebuild {
		set, err = st.loadIndex(start.UUID, start.Spilled, start.Fresh)
	}
	alone := start.Alone && !st.env.ReadOnly
	if err == nil && set.Base() == nil {
		// The index is gone, or this is a new store, which gets an empty one at once:
		// then whoever joins in the middle of the first flush finds one.
		var any bool
		if any, err = st.hasFiles(); err == nil && (alone || any) {
			err = fmt.Errorf("%s: %w", index.BaseName, fs.ErrNotExist)
		}
	}
	if err == nil {
		return st.state.Begin(set, rebuilt(set))
	}
	if set != nil {
		err = errors.Join(err, set.Release())
	}
	if env.Passing(err) {
		return st.env.IOError("reading", filepath.Join(st.env.Dir, index.BaseName), err)
	}
	if !alone {
		if !errors.Is(err, errs.ErrCorrupt) { // older than the log, of another one, or gone
			err = &errs.CorruptionError{Path: index.BaseName, Offset: -1, Err: err}
		}
		return fmt.Errorf("the index cannot be used: %w: close the other processes and open the store again: it will be made anew from the files", err)
	}
	set, from, n, rerr := st.remakeIndex(ctx, remake{store: start.UUID, at: wal.Mark{LSN: start.Spilled, Sum: start.Sum}}, start.Past)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	if n > 0 || !start.Fresh {
		st.report.Rebuilt = &Rebuilt{Why: err, From: from, Memories: n}
		st.env.Logger.Warn("the index was made again", "from", origin(from), "why", err, "memories", n)
		st.env.Event(env.Event{Kind: env.EventRebuilt, Path: index.BaseName, Err: err, Count: n, Note: "from " + origin(from)})
	}
	made := n > 0 || !start.Fresh // an empty one for a new log knows nothing too much
	return st.state.Begin(set, from == "" && made || from != "" && rebuilt(set))
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
func (st *Store) agrees(end wal.Mark, chain func(wal.LSN) (uint64, bool)) error {
	set := st.state.Set()
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

// newerVectors refuses a store whose vectors a newer program has written, as one whose
// index it has: they are derived, but this program could not write them on, and what it
// put would hold the log back for ever. Nothing was changed yet.
func (st *Store) newerVectors() error {
	for _, name := range []string{vector.BaseMapping, vector.DeltaMapping} {
		t, err := table.Open(st.env.FS, st.env.Dir, name, vector.Schema())
		if errors.Is(err, errs.ErrNewerFormat) {
			return err
		}
		if err != nil {
			continue // who needs them says so
		}
		if err := t.Release(); err != nil {
			return err
		}
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
func (st *Store) hasFiles() (bool, error) {
	for _, k := range st.kinds.all {
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
func (st *Store) loadIndex(id uuid.UUID, spilled wal.LSN, fresh bool) (*index.Set, error) {
	want := index.Want{Store: id.String(), Spilled: spilled}
	if fresh {
		want.Start = spilled // nothing was spilled yet
	}
	prev := st.state.Set()
	if prev != nil {
		defer prev.Release()
	}
	set, err := index.Load(st.env.FS, st.env.Dir, want, prev)
	if err != nil && env.Passing(err) {
		err = st.env.IOError("mapping", filepath.Join(st.env.Dir, index.BaseName), err)
	}
	return set, err
}

// highestKnown is the highest position that any index names, for a log that
// must be made new: its positions must not mean two things.
func (st *Store) highestKnown() (wal.LSN, error) {
	var highest wal.LSN
	for _, name := range []string{index.BaseName, index.DeltaName} {
		t, err := table.Open(st.env.FS, st.env.Dir, name, index.Schema())
		if err != nil {
			continue // missing, or not to be read: then it names nothing
		}
		highest = max(highest, t.Meta().LSN)
		if err := t.Release(); err != nil {
			return 0, err
		}
	}
	for _, name := range []string{vector.BaseMapping, vector.DeltaMapping} {
		t, err := table.Open(st.env.FS, st.env.Dir, name, vector.Schema())
		if err != nil {
			continue
		}
		highest = max(highest, t.Meta().LSN)
		if err := t.Release(); err != nil {
			return 0, err
		}
	}
	backups, err := index.Backups(st.env.FS, st.env.Dir)
	if err != nil {
		return 0, st.env.IOError("reading", filepath.Join(st.env.Dir, index.BackupsDir), err)
	}
	for _, b := range backups {
		highest = max(highest, b.LSN)
	}
	if c, err := wal.ReadCheckpoint(st.env.FS, st.env.Dir); err == nil {
		highest = max(highest, c.Attested.LSN)
	}
	return highest, nil
}

// sight brings this process up to what every process has made durable.
func (st *Store) sight(ctx context.Context) error {
	if err := st.movedSince(); err != nil {
		return err
	}
	if err := st.log.CatchUp(ctx); err != nil {
		return err
	}
	st.remapDue()
	return nil
}

// remapDue maps the index that another process has written, if one has.
func (st *Store) remapDue() {
	if st.log.Spilled() > st.state.From() || st.log.Remade() != st.remade.Load() {
		_ = st.refresh() // the old one and the overlay still say the same
	}
}

// refresh maps the index that another process has written. When that fails the
// old one and the overlay still say the same.
func (st *Store) refresh() error {
	if !st.flusher.refreshing.TryLock() {
		return nil // somebody is at it
	}
	defer st.flusher.refreshing.Unlock()
	return st.remap()
}

func (st *Store) remap() error {
	remade := st.log.Remade()
	set, err := st.loadIndex(st.log.UUID(), st.log.Spilled(), false)
	if err == nil {
		err = st.state.Swap(set)
	}
	if err != nil {
		st.env.Logger.Debug("mapping a newer index", "err", err)
		return err
	}
	st.remade.Store(remade)
	st.log.LetGo()
	return nil
}

// healed says, of a look-up that met damage in the index when this had been
// replaced so many times, that another one is mapped by now: somebody has healed
// it, and may have been killed before he could say so.
func (st *Store) healed(swaps uint64) bool {
	st.flusher.refreshing.Lock()
	defer st.flusher.refreshing.Unlock()
	return st.state.Swaps() != swaps || !st.stands() && st.remap() == nil
}

// keepUp maps the index that stands in the folder, before another one is made of
// the one that is mapped; flush.lock is held. Where it cannot be used the one that
// is mapped goes on.
func (st *Store) keepUp() {
	st.flusher.refreshing.Lock()
	defer st.flusher.refreshing.Unlock()
	if !st.stands() {
		_ = st.remap()
	}
}

// stands says whether the index that is mapped is the one in the folder.
func (st *Store) stands() bool {
	set := st.state.Set()
	if set == nil {
		return true
	}
	defer set.Release()
	return set.Stands(st.env.FS, st.env.Dir)
}

// target is where an index is written to.
func (st *Store) target(store uuid.UUID, at wal.Mark) index.Target {
	return index.Target{
		FS: st.env.FS, Dir: st.env.Dir, Temp: filepath.Join(st.env.Dir, "tmp", "index."+st.token), Perm: st.env.FileMode,
		Store: store.String(), LSN: at.LSN, Chain: at.Sum, Now: st.env.Clock(), Model: st.state.ModelBefore(at.LSN),
	}
}
