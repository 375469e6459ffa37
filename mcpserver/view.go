package mcpserver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
)

// view keeps the graph in memory, sorted in the order in which answers list the graph. So a search need not read and
// decode every file. Before each answer, view applies the changes that any process has committed. If the graph exceeds
// the limit, view keeps nothing, and scan reads the store instead.
type view struct {
	st    *varve.Store
	limit int64
	bad   func(error)
	clock func() time.Time

	turn chan struct{} // held by the goroutine that refreshes the view; a call that waits for it may be cancelled

	mu     sync.RWMutex
	loaded bool
	from   uint64    // position from which on changes are read
	stood  time.Time // time at which from was last moved past changes that do not concern the graph
	bytes  int64     // approximate number of bytes that the view occupies
	byID   map[string]*entity
	edges  map[string]*relation            // relations, by id
	ends   map[string]map[string]*relation // relations, by the name at either end, then by id
	order  []*entity
	lines  []*relation
	large  int64 // number of memories when the graph was found to be too large; 0: it was not

	lost   map[string]bool // memories that could not be read, by id; "": some have an unknown id
	looked time.Time       // time of the last attempt to read them
}

func newView(st *varve.Store, limit int64, bad func(error), clock func() time.Time) *view {
	return &view{st: st, limit: limit, bad: bad, clock: clock, turn: make(chan struct{}, 1)}
}

// withGraph calls f with the graph, which includes all changes committed before the call of withGraph.
func (v *view) withGraph(ctx context.Context, f func(nodes) error) error {
	if v.limit < 0 {
		return f(scan{v.st, v.bad})
	}
	small, err := v.refresh(ctx)
	if err != nil {
		return err
	}
	if !small {
		return f(scan{v.st, v.bad})
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.loaded { // another call has found meanwhile that the graph is too large
		return f(scan{v.st, v.bad})
	}
	return f(held{v, v.clock()})
}

// refresh applies the changes committed since the last refresh. small is false if the graph is too large to be
// kept.
func (v *view) refresh(ctx context.Context) (small bool, err error) {
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for range 3 {
		again := v.due()
		if again && v.lost[""] {
			v.drop()
		}
		if !v.loaded {
			if small, err := v.load(ctx); err != nil || !small {
				return small, err
			}
		}
		err = v.catchUp(ctx)
		if err == nil && again {
			err = v.lookAgain(ctx)
		}
		if !errors.Is(err, varve.ErrTruncated) {
			return err == nil && v.loaded, err // applied changes stay applied
		}
		v.drop()
	}
	return false, nil // the log is released faster than the graph is read
}

// between is the minimum time between two checks of the same kind, for checks that are too expensive for every query.
const between = 5 * time.Second

// due reports whether the memories that could not be read must be tried again: there are such memories, and the last
// attempt is at least 5 s ago (the constant between). This is necessary because the log does not show when a file was
// restored or made readable.
func (v *view) due() bool {
	passed := v.clock().Sub(v.looked)
	return len(v.lost) > 0 && (passed >= between || passed < 0)
}

func (v *view) lookAgain(ctx context.Context) error {
	v.looked = v.clock()
	for id := range v.lost {
		m, err := v.st.Get(ctx, id)
		switch {
		case err == nil:
			v.remove(id)
			v.put(entityOf(&m), relationOf(&m))
		case errors.Is(err, varve.ErrNotFound):
		case isOne(err):
			continue
		default:
			return err
		}
		delete(v.lost, id)
	}
	return nil
}

// lose logs and records that the memory with this id could not be read.
func (v *view) lose(id string, err error) {
	v.bad(err)
	if v.lost == nil {
		v.lost, v.looked = map[string]bool{}, v.clock()
	}
	v.lost[id] = true
}

// load reads the whole graph from the store. small is false if the graph is too large to be kept.
func (v *view) load(ctx context.Context) (small bool, err error) {
	if v.large > 0 {
		n, err := v.st.Count(ctx)
		if err != nil || n > v.large/2 {
			return false, err
		}
	}
	v.drop()
	v.byID, v.edges, v.ends = map[string]*entity{}, map[string]*relation{}, map[string]map[string]*relation{}
	v.from = v.st.Admin().Stats().Durable
	all := scan{v.st, v.bad}
	ctx, full := context.WithCancelCause(ctx)
	defer full(nil)
	err = all.every(ctx, func(e *entity, r *relation) {
		if v.put(e, r); v.bytes > v.limit {
			full(errLarge)
		}
	}, v.lose)
	switch {
	case errors.Is(context.Cause(ctx), errLarge):
		v.drop()
		v.large = max(1, v.st.Admin().Stats().Memories)
		return false, nil
	case err != nil:
		v.drop()
		return false, err
	}
	sortEntities(v.order)
	sortRelations(v.lines)
	v.loaded, v.large = true, 0
	return true, nil
}

var errLarge = errors.New("the graph is too large to be kept in memory")

func (v *view) drop() {
	v.loaded, v.from, v.bytes = false, 0, 0
	v.byID, v.edges, v.ends, v.order, v.lines, v.lost = nil, nil, nil, nil, nil, nil
}

func (v *view) catchUp(ctx context.Context) error {
	to, now := v.from, v.clock()
	if passed := now.Sub(v.stood); passed >= between || passed < 0 { // not every time, because Stats is expensive
		v.stood, to = now, v.st.Admin().Stats().Durable
	}
	for c, err := range v.st.Admin().Changes(ctx, v.from) {
		if err != nil && c.Next == 0 {
			return err
		}
		v.from = c.Next
		if c.Kind != "memory" || !graph.IsID(c.ID) {
			continue
		}
		v.remove(c.ID)
		delete(v.lost, c.ID)
		switch {
		case err != nil:
			v.lose(c.ID, err)
		case !c.Deleted:
			v.put(entityOf(&c.Memory), relationOf(&c.Memory))
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	v.from = max(v.from, to) // so that changes of other kinds, such as working memory, are not read again
	if v.bytes > v.limit {
		v.drop()
		v.large = max(1, v.st.Admin().Stats().Memories)
	}
	return nil
}

// overhead is the approximate number of bytes that an entry of the view occupies in addition to its texts.
const overhead = 400

func (e *entity) size() int64 {
	n := int64(overhead + len(e.id) + len(e.Name) + len(e.Type))
	for _, o := range e.Observations {
		n += int64(len(o)) + 16
	}
	return n
}

func (r *relation) size() int64 {
	return int64(2*overhead + len(r.id) + len(r.From) + len(r.To) + len(r.Type))
}

func (v *view) put(e *entity, r *relation) {
	if e != nil {
		v.byID[e.id] = e
		i := len(v.order)
		if v.loaded { // otherwise all are sorted at the end
			i, _ = slices.BinarySearchFunc(v.order, e, byAge[*entity])
		}
		v.order = slices.Insert(v.order, i, e)
		v.bytes += e.size()
	} else if r != nil {
		v.edges[r.id] = r
		i := len(v.lines)
		if v.loaded {
			i, _ = slices.BinarySearchFunc(v.lines, r, byAge[*relation])
		}
		v.lines = slices.Insert(v.lines, i, r)
		for _, name := range []string{r.From, r.To} {
			if v.ends[name] == nil {
				v.ends[name] = map[string]*relation{}
			}
			v.ends[name][r.id] = r
		}
		v.bytes += r.size()
	}
}

func (v *view) remove(id string) {
	if e := v.byID[id]; e != nil {
		delete(v.byID, id)
		if i, ok := slices.BinarySearchFunc(v.order, e, byAge[*entity]); ok {
			v.order = slices.Delete(v.order, i, i+1)
		}
		v.bytes -= e.size()
	} else if r := v.edges[id]; r != nil {
		delete(v.edges, id)
		if i, ok := slices.BinarySearchFunc(v.lines, r, byAge[*relation]); ok {
			v.lines = slices.Delete(v.lines, i, i+1)
		}
		for _, name := range []string{r.From, r.To} {
			delete(v.ends[name], id)
			if len(v.ends[name]) == 0 {
				delete(v.ends, name)
			}
		}
		v.bytes -= r.size()
	}
}

// held implements nodes for the graph that a view has in memory. It is valid only while the lock of the view is held.
type held struct {
	v   *view
	now time.Time
}

func (h held) entities(ctx context.Context, f func(*entity)) error {
	for i, e := range h.v.order {
		if i&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !e.isExpired(h.now) {
			f(e)
		}
	}
	return nil
}

func (h held) relations(_ context.Context, f func(*relation)) error {
	for _, r := range h.v.lines {
		if !r.isExpired(h.now) {
			f(r)
		}
	}
	return nil
}

func (h held) named(_ context.Context, name string) (*entity, error) {
	e := h.v.byID[graph.EntityID(name)]
	if e == nil || e.isExpired(h.now) {
		return nil, nil
	}
	return e, nil
}

func (h held) touching(_ context.Context, names map[string]bool, f func(*relation)) error {
	seen := map[string]bool{}
	for name := range names {
		for id, r := range h.v.ends[name] {
			if !seen[id] && !r.isExpired(h.now) {
				seen[id] = true
				f(r)
			}
		}
	}
	return nil
}
