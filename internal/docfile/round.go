package docfile

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Source returns the changes of a round. It returns each change when a worker is about to make it, so that not all
// changes need to be in memory at the same time.
type Source interface {
	Len() int
	// Folders returns every folder that a change may be in.
	Folders() []*Folder
	// Change stores the i-th change in c, for a worker (0 … Workers-1). A worker calls it with increasing i. The data
	// that c refers to is valid until the worker's next call. Change returns false if the change is not needed. With
	// several workers it is called by several goroutines.
	Change(worker, i int, c *Change) (bool, error)
}

// Round makes the changes to the documents' files and makes them durable. If it returns nil, all changes except those
// in Result.Blocked are durable. If it returns an error, the caller must not treat any change as durable, and repeats
// the round with at least these changes.
func (f *Flusher) Round(ctx context.Context, changes []Change) (Result, error) {
	for i := range changes {
		if err := changes[i].Folder.checkName(changes[i].Name); err != nil {
			return Result{}, f.end(err)
		}
	}
	p, res, err := f.Put(ctx, changeList(changes))
	if err == nil {
		err = p.End(p.Sync())
	}
	return res, err
}

// changeList is a Source whose changes are in memory.
type changeList []Change

func (l changeList) Len() int { return len(l) }

func (l changeList) Change(_, i int, c *Change) (bool, error) {
	*c = l[i]
	return true, nil
}

func (l changeList) Folders() (folders []*Folder) {
	var last *Folder
	for i := range l {
		if f := l[i].Folder; f != last && !slices.Contains(folders, f) {
			folders = append(folders, f)
			last = f
		}
	}
	return folders
}

// Placed is a round of writing files whose files are at their paths but not durable yet.
type Placed struct {
	r       *round
	barrier vfs.Barrier
	folders []string
}

// Put makes the changes of a round without making them durable. Unless Put returns an error, the caller must call Sync,
// and then End with the result of Sync. Put may be called for other rounds meanwhile; if Sync fails, those rounds must
// be repeated as well.
func (f *Flusher) Put(ctx context.Context, src Source) (*Placed, Result, error) {
	p := &Placed{r: &round{f: f, ctx: ctx, src: src}}
	err := p.run()
	if err != nil {
		err = p.End(err)
	}
	r := p.r
	slices.SortStableFunc(r.res.Edits, func(a, b Edit) int { return cmp.Compare(a.Change, b.Change) })
	slices.SortFunc(r.res.Blocked, func(a, b Blocked) int { return cmp.Compare(a.Change, b.Change) })
	slices.Sort(r.res.Missing)
	return p, r.res, err
}

// Sync makes the round durable. It may run in another goroutine.
func (p *Placed) Sync() error {
	if p.barrier != nil {
		if err := p.barrier.Sync(); err != nil {
			return syncFailure("the file system of the store", err)
		}
		return nil
	}
	for _, dir := range p.folders {
		err := p.r.f.o.FS.SyncDir(dir)
		if errors.Is(err, fs.ErrNotExist) { // a user has removed or moved it, and the files with it: not the disk's failure
			return failure("sync the folder", p.r.f.o.rel(dir), err)
		}
		if err != nil {
			return syncFailure(p.r.f.o.rel(dir), err)
		}
	}
	return p.r.syncInner()
}

// End finishes the round. err is the result of Sync, and End returns it.
func (p *Placed) End(err error) error {
	if p.barrier != nil {
		_ = p.barrier.Close()
		return p.r.f.end(err)
	}
	if vfs.IsUnopened(err) && !errors.Is(err, errs.ErrSyncFailed) {
		// No sync has failed: what was written is either synced already, or still marked dirty. The round
		// must be repeated, and may reuse its inodes.
		return errors.Join(err, p.r.f.emptyPools())
	}
	return p.r.f.end(err)
}

func (f *Flusher) end(err error) error {
	if err != nil {
		// Pages that a failed sync left look clean and are not: the inodes that were written in this round
		// are never used again.
		f.fresh, f.distrust = true, true
		_ = f.emptyPools() // a file that stays is marked, and the next EmptyTemp removes it
	} else {
		f.fresh, f.distrust = false, false
	}
	return err
}

func (f *Flusher) emptyPools() error {
	var all []error
	for _, w := range f.workers {
		all = append(all, w.empty())
	}
	return errors.Join(all...)
}

type round struct {
	f      *Flusher
	ctx    context.Context
	src    Source
	n      int
	each   bool // every file is synced before it is put in place
	next   atomic.Int64
	failed atomic.Bool

	places map[*Folder]vfs.Dir // the folders of documents, opened for unnamed files; empty: all files have names

	mu    sync.Mutex
	res   Result
	inner map[string]bool // paths of the folders, in trees, that contain the documents of the changes
}

func (p *Placed) run() (err error) {
	r := p.r
	r.n = r.src.Len()
	if err := p.check(); err != nil {
		return err
	}
	if err := r.f.prepare(); err != nil {
		return err
	}
	defer r.f.quarantine.alone()()
	if err := r.f.parked.retry(r.edit); err != nil {
		return err
	}
	if r.n == 0 {
		p.folders = nil
		return nil
	}
	if p.barrier, err = r.barrier(); err != nil {
		return err
	}
	defer r.closePlaces()
	if err := p.openPlaces(); err != nil {
		return err
	}
	if err := r.work(); err != nil {
		return err
	}
	if err := r.samePlaces(); err != nil {
		return err
	}
	return r.f.parked.sync()
}

// check returns an error if a folder of documents that the round changes is missing or is not a folder. It checks each
// folder only once, and records the folder's path for Sync.
func (p *Placed) check() error {
	if p.r.n == 0 {
		return nil
	}
	for _, f := range p.r.src.Folders() {
		dir := f.dir[:len(f.dir)-1]
		if slices.Contains(p.folders, dir) {
			continue
		}
		if err := f.Check(); err != nil {
			return err
		}
		p.folders = append(p.folders, dir)
	}
	return nil
}

// barrier decides whether the whole round is made durable by one barrier of the file system. If so, barrier opens it.
// The descriptor of the barrier must be opened before the first write; otherwise the barrier does not report failures
// of that write.
func (r *round) barrier() (vfs.Barrier, error) {
	r.each = true
	if r.f.o.Direct < 0 || r.n <= r.f.o.Direct || r.f.distrust {
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
		return r.workOne(0)
	}
	fails := make([]error, len(r.f.workers))
	var wg sync.WaitGroup
	for i := range r.f.workers {
		wg.Go(func() { fails[i] = r.workOne(i) })
	}
	wg.Wait()
	return errors.Join(fails...)
}

// share is the number of adjacent changes that a worker takes at once. The Source reads adjacent changes together.
const share = 32

// workOne makes changes, as the worker with the given number, until no change is left or a change of any worker fails.
func (r *round) workOne(number int) (err error) {
	w := r.f.workers[number]
	w.r = r
	defer func() {
		if err != nil {
			r.failed.Store(true)
		}
	}()
	defer w.closeOwn()
	if err := w.openOwn(); err != nil {
		return err
	}
	var c Change
	for at := 0; at < r.n; {
		at = int(r.next.Add(share)) - share
		for i := at; i < min(at+share, r.n) && !r.failed.Load(); i++ {
			if err := r.ctx.Err(); err != nil {
				return err
			}
			c = Change{}
			if ok, err := r.src.Change(number, i, &c); err != nil {
				return err
			} else if !ok {
				continue
			}
			if err := w.change(i, &c); err != nil {
				return err
			}
			w.turns.Give() // commits should not wait for the whole round
		}
		if r.failed.Load() {
			break
		}
	}
	return w.retireTemp()
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

// entered records the folders that contain the document of a change, in a tree of folders, so that they become
// durable with the round.
func (r *round) entered(c *Change) {
	if !c.Folder.o.Tree {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inner == nil {
		r.inner = map[string]bool{}
	}
	for _, dir := range c.Folder.ancestors(c.Name) {
		r.inner[dir] = true
	}
}

// syncInner syncs those of the recorded folders in trees that still exist. If a folder was removed, the removal becomes
// durable when its parent is synced.
func (r *round) syncInner() error {
	isFolder := func(dir string) bool {
		info, err := r.f.o.FS.Stat(dir)
		if notFolder := (*vfs.NotFolderError)(nil); errors.As(err, &notFolder) {
			return false
		}
		return err == nil && info.Mode.IsDir() ||
			err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
	}
	for _, dir := range slices.Sorted(maps.Keys(r.inner)) {
		if !isFolder(dir) {
			continue
		}
		if err := r.f.o.FS.SyncDir(dir); err != nil && isFolder(dir) {
			return syncFailure(r.f.o.rel(dir), err)
		}
	}
	return nil
}
