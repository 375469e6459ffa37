package adopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/rebuild"
)

// Drift is how files and index differ, by name: what somebody did to the folder
// while nobody had the store open.
type Drift struct {
	Checked  bool     // the comparison is done
	Missing  []string // ids whose file is gone
	Stranger []string // files in the folder that no document of its kind has
	Count    int      // of both; the lists hold the first of them
	Restored []string // ids of those missing whose file was put back, by auto_repair
	Deleted  []string // ids of those missing that were deleted by hand: the deletion was taken over
}

// Reconcile compares names when a folder is not as our last flush left it, by its time; of a tree always. It
// reads no documents: a changed one is found when it is read. So is a change within the tick of
// the kernel's clock (up to 10 ms) in which the last flush ended: such a change leaves the time
// as it was.
func (ed *Adopter) Reconcile(ctx context.Context) {
	if !ed.engine.Log().Report().Recovered {
		return // others have it open: their flushes move the time
	}
	before := ed.engine.Log().Report().Mtimes
	for i, k := range ed.present() {
		// The checkpoint has no time of a tree, which would have one of each of its folders, or of a kind
		// that there is no room for: the names are compared each time.
		timed := !k.Tree() && i < len(before)
		info, err := ed.engine.Env().FS.Stat(k.Path(""))
		if err != nil || timed && (before[i] == 0 || info.Mtime.UnixNano() == before[i]) {
			continue
		}
		if k.FileWins {
			ed.sweep(ctx, k)
		}
		drift, err := ed.Drift(ctx, k)
		if err != nil {
			if ctx.Err() == nil {
				ed.engine.NoteProblem(fmt.Errorf("comparing the files in %s and the index: %w", k.Name(), err))
			}
			return
		}
		ed.repairDrift(ctx, k, drift)
		if timed && len(drift.Missing) == len(drift.Restored)+len(drift.Deleted) && ctx.Err() == nil {
			ed.flusher.Compared(i, info.Mtime.UnixNano())
		}
		ed.drifts[k.At].Store(drift)
		if drift.Count > 0 {
			ed.engine.Env().Logger.Warn("files and index do not agree: run memctl verify", "folder", k.Name(), "missing",
				len(drift.Missing)-len(drift.Restored)-len(drift.Deleted),
				"put back", len(drift.Restored), "deleted by hand", len(drift.Deleted), "strangers", len(drift.Stranger))
			ed.engine.Env().Event(env.Event{Kind: env.EventDrift, Path: k.Name(), Count: drift.Count})
		}
	}
}

// sweep adopts what was written to the files of a kind whose files win while no process had the store open, new files
// too. Another process may watch: it does the same.
func (ed *Adopter) sweep(ctx context.Context, k *engine.Kind) {
	if ed.engine.Env().ReadOnly || ed.engine.Log().Processes().Leader() != 0 || ed.engine.Settings().Gone() {
		return
	}
	f := &Files{ed}
	var names []string
	look := func() {
		if _, err := f.Look(ctx, k.Name(), names); err != nil && ctx.Err() == nil {
			ed.engine.Env().Logger.Warn("looking for files that were edited", "folder", k.Name(), "err", err)
		}
		names = nil
	}
	for name, err := range f.Suspects(ctx, k.Name()) {
		if err != nil {
			return
		}
		if name == "" {
			continue
		}
		if names = append(names, name); len(names) == commit.PartsMost {
			look()
		}
	}
	if len(names) > 0 {
		look()
	}
}

// repairDrift does the cheap part, where config.json lets it: a file that is gone,
// and that the log still has, was deleted by hand, or is put back. What needs the archive, and whether a
// stranger is new or was deleted, is repair's.
func (ed *Adopter) repairDrift(ctx context.Context, k *engine.Kind, d *Drift) {
	if ed.engine.Env().ReadOnly || len(d.Missing) == 0 {
		return
	}
	if err := ed.unwatched(ctx, k); err != nil && ctx.Err() == nil {
		ed.engine.Env().Logger.Warn("looking for files that were deleted by hand", "folder", k.Name(), "err", err)
	}
	for _, id := range d.Missing {
		if ctx.Err() != nil {
			return
		}
		if _, err := ed.engine.Find(ctx, k, id, false); errors.Is(err, errs.ErrNotFound) {
			d.Deleted = append(d.Deleted, id)
			continue
		}
		if !ed.engine.Settings().Now().MayRepair() {
			continue
		}
		// Reading it is judging it: see judge.
		if _, err := ed.engine.Find(ctx, k, id, true); err != nil {
			continue
		}
		if _, err := k.Stat(k.FileName(id)); err == nil {
			d.Restored = append(d.Restored, id)
		}
	}
}

// Drift lists the names that only one side knows, looked at twice: a flush may
// be going on.
func (ed *Adopter) Drift(ctx context.Context, k *engine.Kind) (*Drift, error) {
	names, err := k.Names()
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	known := make([]bool, len(names))
	d := &Drift{Checked: true}
	for id, err := range ed.engine.IDs(ctx, k, engine.Filters{}) {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		name := k.FileName(id)
		if i, ok := slices.BinarySearch(names, name); ok {
			known[i] = true
			continue
		}
		if ed.ReallyMissing(ctx, k, id, name) {
			d.add(&d.Missing, id)
		}
	}
	for i, name := range names {
		if !known[i] && !ed.isLeft(k, name) && ed.reallyStrange(ctx, k, name) {
			d.add(&d.Stranger, name)
		}
	}
	return d, nil
}

func (d *Drift) add(list *[]string, s string) {
	if d.Count++; len(*list) < engine.MaxProblems {
		*list = append(*list, s)
	}
}

// ReallyMissing looks again, in the order that leaves no gap: what is not there, and
// was flushed before that was seen, and is still the newest afterwards, is missing.
// A newer one may be on its way, its predecessor taken away.
func (ed *Adopter) ReallyMissing(ctx context.Context, k *engine.Kind, id, name string) bool {
	flushed := ed.engine.Log().Flushed()
	if _, err := k.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	v, err := ed.engine.Find(ctx, k, id, false)
	return err == nil && v.LSN < flushed
}

// reallyStrange looks again: a deleted document is still there until that is flushed.
func (ed *Adopter) reallyStrange(ctx context.Context, k *engine.Kind, name string) bool {
	flushed := ed.engine.Log().Flushed()
	p, _, err := rebuild.ParseFile(ed.engine, k, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	if _, err := ed.engine.Find(ctx, k, p.ID, false); !errors.Is(err, errs.ErrNotFound) {
		return false
	}
	if at := ed.engine.State().Deletion(k.Letter, p.ID); at != 0 && at >= flushed {
		return false
	}
	_, err = k.Stat(name) // a deletion that the overlay has let go of was flushed
	return !errors.Is(err, fs.ErrNotExist)
}
