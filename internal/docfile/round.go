package docfile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/internal/vfs"
)

// Round puts the changes in place and makes them durable. On nil all changes
// but those in Result.Blocked are; on an error none may be taken for durable,
// and the caller repeats the round, with these changes and others if it likes.
func (f *Flusher) Round(ctx context.Context, changes []Change) (Result, error) {
	r := &round{f: f, ctx: ctx, changes: changes}
	err := r.run()
	if err != nil {
		// Pages that a failed sync left behind look clean and are not: what was
		// written in this round lives in inodes that are never used again.
		f.fresh, f.distrust = true, true
		for _, w := range f.workers {
			_ = w.empty() // what stays is marked, and goes with the next EmptyTemp
		}
	} else {
		f.fresh, f.distrust = false, false
	}
	slices.SortStableFunc(r.res.Edits, func(a, b Edit) int { return cmp.Compare(a.Change, b.Change) })
	slices.SortFunc(r.res.Blocked, func(a, b Blocked) int { return cmp.Compare(a.Change, b.Change) })
	slices.Sort(r.res.Missing)
	return r.res, err
}

type round struct {
	f       *Flusher
	ctx     context.Context
	changes []Change
	each    bool // every file is synced before it is put in place
	next    atomic.Int64
	failed  atomic.Bool

	mu  sync.Mutex
	res Result
}

func (r *round) run() error {
	folders, err := r.check()
	if err != nil {
		return err
	}
	if err := r.f.prepare(); err != nil {
		return err
	}
	if err := r.f.parked.retry(r.edit); err != nil {
		return err
	}
	if len(r.changes) == 0 {
		return nil
	}
	barrier, err := r.barrier()
	if err != nil {
		return err
	}
	if barrier != nil {
		defer func() { _ = barrier.Close() }()
	}
	if err := r.work(); err != nil {
		return err
	}
	if err := r.f.parked.sync(); err != nil {
		return err
	}
	if barrier != nil {
		if err := barrier.Sync(); err != nil {
			return syncFailure("the file system of the store", err)
		}
		return nil
	}
	for _, dir := range folders {
		if err := r.f.o.FS.SyncDir(dir); err != nil {
			return syncFailure(r.f.o.rel(dir), err)
		}
	}
	return nil
}

// check returns the folders of the round, each once.
func (r *round) check() (folders []string, err error) {
	var last *Folder
	for i := range r.changes {
		c := &r.changes[i]
		if err := checkName(c.Name); err != nil {
			return nil, err
		}
		if c.Folder == last {
			continue
		}
		last = c.Folder
		dir := last.dir[:len(last.dir)-1]
		if slices.Contains(folders, dir) {
			continue
		}
		if err := last.Check(); err != nil {
			return nil, err
		}
		folders = append(folders, dir)
	}
	return folders, nil
}

// barrier decides how the round becomes durable. The descriptor must be opened
// before the first write, or it does not report that write's failure.
func (r *round) barrier() (vfs.Barrier, error) {
	r.each = true
	if r.f.o.Direct < 0 || len(r.changes) <= r.f.o.Direct || r.f.distrust {
		return nil, nil
	}
	b, err := r.f.o.FS.OpenBarrier(r.f.o.Root)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, nil
	case err != nil:
		return nil, failure("open a barrier on", r.f.o.Root, err)
	}
	r.each = false
	return b, nil
}

func (r *round) work() error {
	if len(r.f.workers) == 1 {
		return r.workOne(r.f.workers[0])
	}
	fails := make([]error, len(r.f.workers))
	var wg sync.WaitGroup
	for i, w := range r.f.workers {
		wg.Go(func() { fails[i] = r.workOne(w) })
	}
	wg.Wait()
	return errors.Join(fails...)
}

// workOne makes changes until none is left or one fails.
func (r *round) workOne(w *worker) error {
	w.r = r
	for !r.failed.Load() {
		i := int(r.next.Add(1)) - 1
		if i >= len(r.changes) {
			break
		}
		err := r.ctx.Err()
		if err == nil {
			err = w.change(i, &r.changes[i])
		}
		if err != nil {
			r.failed.Store(true)
			return err
		}
	}
	if err := w.rest(); err != nil {
		r.failed.Store(true)
		return err
	}
	return nil
}

func (r *round) edit(e Edit) {
	r.mu.Lock()
	r.res.Edits = append(r.res.Edits, e)
	r.mu.Unlock()
}

func (r *round) blocked(i int, err error) {
	r.mu.Lock()
	r.res.Blocked = append(r.res.Blocked, Blocked{Change: i, Err: err})
	r.mu.Unlock()
}

func (r *round) missing(i int) {
	r.mu.Lock()
	r.res.Missing = append(r.res.Missing, i)
	r.mu.Unlock()
}
