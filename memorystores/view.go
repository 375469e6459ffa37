package memorystores

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/varve-db/varve"
)

// mostVersions is of how many versions of a store a view has the newest.
const mostVersions = 1 << 20

// view is what is made of a store to find memories and versions by their ids. It is lost when the store is closed.
type view struct {
	mu    sync.Mutex
	paths map[memory]string // nil: not made yet
	asOf  uint64            // position of the log, as of which paths was made

	versions struct {
		sync.Mutex
		log     *varve.NoteLog // nil: nothing was read
		list    []version      // by lsn
		names   map[string]string
		writers []varve.Writer
		numbers map[uint32]int32 // of writers
	}
}

// version is one version of a memory.
type version struct {
	lsn    uint64
	time   int64 // Unix microseconds
	memory memory
	path   string
	size   int64
	hash   [32]byte
	writer int32 // in writers; -1: unknown
	what   string
}

// path returns where a memory is, or was: false if it is not known.
func (v *view) path(ctx context.Context, st *varve.Store, m memory) (string, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if path, ok := v.paths[m]; ok {
		return path, true, nil
	}
	return v.again(ctx, st, m)
}

// moved is path for a memory that is not where path said.
func (v *view) moved(ctx context.Context, st *varve.Store, m memory, from string) (string, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if path, ok := v.paths[m]; ok && path != from {
		return path, true, nil
	}
	delete(v.paths, m)
	v.asOf = 0 // paths was wrong, also for the position of now
	return v.again(ctx, st, m)
}

// again makes paths again, if the store has changed since. The caller holds v.mu.
func (v *view) again(ctx context.Context, st *varve.Store, m memory) (string, bool, error) {
	now := st.Admin().Stats().Durable
	if v.paths != nil && now == v.asOf {
		return "", false, nil
	}
	paths := map[memory]string{}
	for e, err := range st.Notes().List(ctx, "", 0) {
		if err != nil {
			return "", false, err
		}
		paths[memoryOf(e.ID, e.CreatedAt)] = e.Path
	}
	v.paths, v.asOf = paths, now
	path, ok := paths[m]
	return path, ok, nil
}

// put notes where a memory is now.
func (v *view) put(m memory, path string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.paths != nil {
		v.paths[m] = path
	}
}

// drop forgets where a memory was that was deleted.
func (v *view) drop(m memory) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.paths, m)
}

// all calls f with the versions up to now, by their positions; f must not keep the list.
func (v *view) all(ctx context.Context, s *Stores, h *handle, f func(list []version, writers []varve.Writer)) error {
	l := &v.versions
	l.Lock()
	defer l.Unlock()
	if l.log == nil {
		l.log, l.list, l.names, l.numbers = h.store.Notes().Log(), nil, map[string]string{}, map[uint32]int32{}
	}
	sorted, read := true, false
	var failed error
	// What is read is kept, so it is read to its end, also for a client that is gone.
	for r, err := range l.log.Next(context.WithoutCancel(ctx)) {
		if err != nil {
			s.o.Logger.Warn("a part of the history cannot be read", "store", h.id, "err", err)
			if failed == nil && !errors.Is(err, varve.ErrTruncated) { // which is a hole, behind which nothing may be new
				failed = err
			}
			continue
		}
		read = true
		path, ok := l.names[r.Path]
		if !ok {
			path = r.Path
			l.names[path] = path
		}
		e := version{lsn: r.LSN, time: r.Time.UnixMicro(), memory: memoryOf(r.NoteID, r.CreatedAt), path: path, size: r.Size,
			hash: r.ContentHash, writer: -1, what: operationOf(r.What)}
		if w := &r.Writer; w.Number != 0 && r.Cause == "" {
			if e.writer, ok = l.numbers[w.Number]; !ok {
				e.writer = int32(len(l.writers))
				l.numbers[w.Number], l.writers = e.writer, append(l.writers, *w)
			}
		}
		sorted = sorted && (len(l.list) == 0 || l.list[len(l.list)-1].lsn < e.lsn)
		l.list = append(l.list, e)
	}
	if failed != nil && !read {
		return failed // the list may lack what was written since
	}
	if !sorted {
		slices.SortFunc(l.list, byPosition)
	}
	if n := len(l.list) - mostVersions; n > mostVersions/8 {
		l.list = slices.Clone(l.list[n:])
	}
	f(l.list, l.writers)
	return ctx.Err()
}

func byPosition(a, b version) int { return cmp.Compare(a.lsn, b.lsn) }

// Operations of versions.
const (
	created  = "created"
	modified = "modified"
	removed  = "deleted"
)

// operationOf returns the word of the API for varve.NoteVersion.What.
func operationOf(what string) string {
	switch what {
	case "created":
		return created
	case "deleted":
		return removed
	}
	return modified
}
