package memorystores

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/varve-db/varve"
)

// mostVersions is the maximum number of versions of a store that a view keeps. If there are more, the view keeps the
// newest ones.
const mostVersions = 1 << 20

// view finds the memories and versions of a store by their ids. It is computed from the store, and discarded
// when the store is closed.
type view struct {
	mu    sync.Mutex
	log   *varve.NoteLog    // reads new versions for paths and moves; nil: nothing was read yet
	paths map[memory]string // current path of each memory; nil: not computed yet
	moves []move            // changes of paths, in the order of the log
	since uint64            // log position from which on moves is complete

	versions struct {
		sync.Mutex
		log     *varve.NoteLog // reads new versions for the lists below; nil: nothing was read yet
		list    []version      // versions sorted by lsn
		names   map[string]string
		writers []varve.Writer
		numbers map[uint32]int32 // index in writers, by number of the writer
	}
}

// move is a change of the path of a memory.
type move struct {
	lsn    uint64
	memory memory
	from   string
	to     string
}

// mostMoves is the maximum number of moves that a view keeps. A listing that began before the oldest of them continues
// as if no memory had been moved.
const mostMoves = 1 << 16

// version is one version of a memory.
type version struct {
	lsn    uint64
	time   int64 // time of the version in Unix microseconds
	memory memory
	path   string
	size   int64
	hash   [32]byte
	writer int32 // index in view.versions.writers; -1: the writer is unknown
	what   string
}

// path returns the current path of a memory. The bool is true if the view knows a path. A known path may be out of
// date; the caller notices this when it reads the note, and then calls moved.
func (v *view) path(ctx context.Context, st *varve.Store, m memory) (string, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if path, ok := v.paths[m]; ok {
		return path, true, nil // its reader sees whether it is there
	}
	err := v.follow(ctx, st, true)
	path, ok := v.paths[m]
	return path, ok && err == nil, err
}

// moved returns the current path of a memory that the caller has not found at the path from. The bool is false if the
// view knows no path of the memory.
func (v *view) moved(ctx context.Context, st *varve.Store, m memory, from string) (string, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	err := v.follow(ctx, st, true)
	if err == nil && v.paths[m] == from { // it has expired, was purged, or is there again
		v.paths = nil
		err = v.follow(ctx, st, true)
	}
	path, ok := v.paths[m]
	return path, ok && err == nil, err
}

// follow calls catchUp. If the log no longer has the part that catchUp needs, follow starts again from the beginning.
func (v *view) follow(ctx context.Context, st *varve.Store, paths bool) error {
	err := v.catchUp(ctx, st, paths)
	if errors.Is(err, varve.ErrTruncated) {
		err = v.catchUp(ctx, st, paths)
	}
	return err
}

// catchUp updates moves. It also updates paths if the caller requests this, or if paths is computed already. While
// paths is computed from a listing, memories can be moved, and the listing may not have them. So catchUp applies the
// changes from this time to paths afterwards. The caller holds v.mu.
func (v *view) catchUp(ctx context.Context, st *varve.Store, paths bool) error {
	if v.log == nil {
		v.since = st.Admin().Stats().Durable
		v.log, v.moves, v.paths = st.Notes().LogFrom(v.since), nil, nil
	}
	if paths && v.paths == nil {
		if err := v.next(ctx); err != nil {
			return err
		}
		list := map[memory]string{}
		for e, err := range st.Notes().List(ctx, "", 0) {
			if err != nil {
				return err
			}
			list[memoryOf(e.ID, e.CreatedAt)] = e.Path
		}
		v.paths = list
	}
	return v.next(ctx)
}

// next applies the log entries that were written since its last call to moves, and to paths if that is computed. The
// caller holds v.mu.
func (v *view) next(ctx context.Context) error {
	var failed error
	for r, err := range v.log.Next(context.WithoutCancel(ctx)) { // to its end, also for a client that is gone
		if err != nil {
			failed = err
			continue
		}
		m := memoryOf(r.NoteID, r.CreatedAt)
		if r.From != "" {
			v.moves = append(v.moves, move{r.LSN, m, r.From, r.Path})
		}
		switch {
		case v.paths == nil:
		case r.What == "deleted":
			if v.paths[m] == r.Path {
				delete(v.paths, m)
			}
		case r.From != "" || r.What == "created":
			v.paths[m] = r.Path
		}
	}
	if failed != nil {
		v.log, v.paths = nil, nil // the next call begins again
		return failed
	}
	if n := len(v.moves) - mostMoves; n > mostMoves/8 {
		v.since = v.moves[n-1].lsn + 1
		v.moves = slices.Clone(v.moves[n:])
	}
	return nil
}

// begin returns the log position at which a new listing begins: the position up to which the view has read the log.
func (v *view) begin(ctx context.Context, st *varve.Store) (uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.follow(ctx, st, false); err != nil {
		return 0, err
	}
	return v.log.Position(), nil
}

// trip has the path that a memory had before its first move, and the path that it has after its last one.
type trip struct{ from, to string }

// movedSince returns the memories that were moved since a log position. If the position is before v.since, the result
// is empty, because the view does not have all moves since then. v.since is not earlier than the time at which this
// process opened the store.
func (v *view) movedSince(ctx context.Context, st *varve.Store, position uint64) (map[memory]trip, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.follow(ctx, st, false); err != nil {
		return nil, err
	}
	all := map[memory]trip{}
	if position < v.since {
		return all, nil
	}
	first := map[string]memory{} // which memory was at a path then; another that leaves it was made since
	at, _ := slices.BinarySearchFunc(v.moves, position, func(m move, p uint64) int { return cmp.Compare(m.lsn, p) })
	for _, m := range v.moves[at:] {
		if _, left := first[m.from]; !left {
			first[m.from] = m.memory
		}
		t, known := all[m.memory]
		if !known && first[m.from] != m.memory {
			continue
		}
		if !known {
			t.from = m.from
		}
		t.to = m.to
		all[m.memory] = t
	}
	return all, nil
}

// all calls f with the kept versions that are durable now, in the order of their positions. f must not keep the list.
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

// The values of operation in the JSON of a version.
const (
	created  = "created"
	modified = "modified"
	removed  = "deleted"
)

// operationOf returns the name that the API uses for change, a value of varve.NoteVersion.What.
func operationOf(change string) string {
	switch change {
	case "created":
		return created
	case "deleted":
		return removed
	}
	return modified
}
