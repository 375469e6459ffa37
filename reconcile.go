package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"

	"github.com/varve-db/varve/internal/docfile"
)

// Drift is how files and index differ, by name: what somebody did to the folder
// while nobody had the store open.
type Drift struct {
	Checked  bool     // the comparison is done
	Missing  []string // ids whose file is gone
	Stranger []string // files in memories/ that no memory has
	Count    int      // of both; the lists hold the first of them
	Restored []string // ids of those missing whose file was put back, by auto_repair
}

// reconcile compares names when the folder is not as our last flush left it. It
// reads no documents: a changed one is found when it is read.
func (st *Store) reconcile(ctx context.Context) {
	if !st.log.Report().Recovered {
		return // others have it open: their flushes move the time
	}
	before := st.log.Report().Mtimes[0]
	info, err := st.fs.Stat(st.memories.Path(""))
	if err != nil || before == 0 || info.Mtime.UnixNano() == before {
		return
	}
	drift, err := st.drift(ctx)
	if err != nil {
		if ctx.Err() == nil {
			st.problem(fmt.Errorf("comparing files and index: %w", err))
		}
		return
	}
	st.repairDrift(ctx, drift)
	st.report.mu.Lock()
	st.report.Drift = drift
	st.report.mu.Unlock()
	if drift.Count > 0 {
		st.o.Logger.Warn("files and index do not agree: run memctl verify", "missing", len(drift.Missing)-len(drift.Restored),
			"put back", len(drift.Restored), "strangers", len(drift.Stranger))
		st.event(Event{Kind: EventDrift, Path: "memories", Count: drift.Count})
	}
}

// repairDrift does the cheap part, where config.json lets it: a file that is gone,
// and that the log still has, is put back. What needs the archive, and whether a
// stranger is new or was deleted, is repair's.
func (st *Store) repairDrift(ctx context.Context, d *Drift) {
	if st.o.ReadOnly || !st.autoRepair() {
		return
	}
	for _, id := range d.Missing {
		if ctx.Err() != nil {
			return
		}
		// Reading it is judging it: see judge.
		if _, err := st.find(ctx, id, true); err != nil {
			continue
		}
		if _, err := st.memories.Stat(docfile.FileName(id)); err == nil {
			d.Restored = append(d.Restored, id)
		}
	}
}

// drift lists the names that only one side knows, looked at twice: a flush may
// be going on.
func (st *Store) drift(ctx context.Context) (*Drift, error) {
	names, err := st.memories.Names()
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	known := make([]bool, len(names))
	d := &Drift{Checked: true}
	for id, err := range st.ids(ctx, filters{}) {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		name := docfile.FileName(id)
		if i, ok := slices.BinarySearch(names, name); ok {
			known[i] = true
			continue
		}
		if st.reallyMissing(ctx, id, name) {
			d.add(&d.Missing, id)
		}
	}
	for i, name := range names {
		if !known[i] && st.reallyStrange(ctx, name) {
			d.add(&d.Stranger, name)
		}
	}
	return d, nil
}

func (d *Drift) add(list *[]string, s string) {
	if d.Count++; len(*list) < maxProblems {
		*list = append(*list, s)
	}
}

// reallyMissing looks again: the memory may not be flushed yet, or be gone.
func (st *Store) reallyMissing(ctx context.Context, id, name string) bool {
	v, err := st.find(ctx, id, false)
	if err != nil || v.lsn >= st.log.Flushed() {
		return false
	}
	_, err = st.memories.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

func (st *Store) reallyStrange(ctx context.Context, name string) bool {
	m, _, err := st.parseFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	_, err = st.find(ctx, m.ID, false)
	return errors.Is(err, ErrNotFound)
}
