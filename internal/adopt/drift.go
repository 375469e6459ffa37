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

// Drift describes how the files and the index differ: changes made to the folder while no process had the store
// open.
type Drift struct {
	Checked  bool     // the comparison has been done
	Missing  []string // ids whose file is missing
	Stranger []string // files in the folder that belong to no document of its kind
	Count    int      // number of missing and strange files; Missing and Stranger list only the first ones
	Restored []string // missing ids whose file was restored, because auto_repair is set
	Deleted  []string // missing ids whose deletion by hand was adopted
}

// Reconcile first continues to restore the files of folders that have vanished. If no other process has the store
// open, it then compares the names of the files in each folder with the index, and decides about the differences. It
// omits a folder whose modification time is the same as at the store's last flush. Folders with subfolders are always
// compared. For kinds without FileWins (see kind.Kind), it reads no documents: a changed document is found when it is
// read. If a change is made within the same tick of the kernel's clock (up to 10 ms) in which the last flush ended,
// the time of the folder stays the same, so the change is found only when the document is read.
func (ed *Adopter) Reconcile(ctx context.Context) {
	ed.resumeAll(ctx)
	if !ed.engine.Log().Report().Recovered {
		return // other processes have the store open: their flushes change the time
	}
	before := ed.engine.Log().Report().Mtimes
	for i, k := range ed.present() {
		// The checkpoint has no time for a tree, which would need one for each of its folders, nor for a kind for which
		// it has no space: those names are compared each time.
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
				"restored", len(drift.Restored), "deleted by hand", len(drift.Deleted), "strangers", len(drift.Stranger))
			ed.engine.Env().Event(env.Event{Kind: env.EventDrift, Path: k.Name(), Count: drift.Count})
		}
	}
}

// sweep adopts the changes, including new files, that were made to the files of a kind with FileWins (see kind.Kind)
// while no process had the store open. If another process watches the files, sweep does nothing, because that process
// adopts the changes.
func (ed *Adopter) sweep(ctx context.Context, k *engine.Kind) {
	if ed.engine.Env().ReadOnly || ed.engine.Log().Processes().Leader() != 0 || ed.engine.Settings().Gone() {
		return
	}
	f := &Files{ed}
	var names []string
	look := func() {
		if _, err := f.Look(ctx, k.Name(), names); err != nil && ctx.Err() == nil {
			ed.engine.Env().Logger.Warn("searching for edited files", "folder", k.Name(), "err", err)
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

// repairDrift decides about the missing files in d, if config.json allows it: a missing file is treated as deleted by
// hand, or restored from the log or the archive. It records the result in d. It does not decide whether a file without
// a document is new or belongs to a deleted document: memctl repair does that.
func (ed *Adopter) repairDrift(ctx context.Context, k *engine.Kind, d *Drift) {
	if ed.engine.Env().ReadOnly || len(d.Missing) == 0 {
		return
	}
	if err := ed.unwatched(ctx, k); err != nil && ctx.Err() == nil {
		ed.engine.Env().Logger.Warn("searching for files that were deleted by hand", "folder", k.Name(), "err", err)
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
		// Find judges it: see judge.
		if _, err := ed.engine.Find(ctx, k, id, true); err != nil {
			continue
		}
		if _, err := k.Stat(k.FileName(id)); err == nil {
			d.Restored = append(d.Restored, id)
		}
	}
}

// Drift compares the names of the files of a kind with the index, and returns the differences. It checks each
// difference a second time, because a flush may be running.
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

// ReallyMissing checks a second time whether the file of a document is missing. name is the name of the file. The
// result is true if the file does not exist, the document's newest version was flushed before ReallyMissing looked for
// the file, and that version is still the newest one afterwards. The order matters, because a newer version may be
// about to be written to a file, after the file of its predecessor was removed.
func (ed *Adopter) ReallyMissing(ctx context.Context, k *engine.Kind, id, name string) bool {
	flushed := ed.engine.Log().Flushed()
	if _, err := k.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	v, err := ed.engine.Find(ctx, k, id, false)
	return err == nil && v.LSN < flushed
}

// reallyStrange reports whether a file belongs to no document, by a second check: the file of a deleted document exists
// until the deletion is flushed, and is not strange until then.
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
	_, err = k.Stat(name) // a deletion that the overlay has dropped was flushed
	return !errors.Is(err, fs.ErrNotExist)
}
