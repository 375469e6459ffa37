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

// view keeps the graph in memory, in the order of the answers, and takes up what
// every process has committed before it answers: without it each search would
// read and decode every file. Beyond its limit it keeps nothing, and scan reads
// the store.
type view struct {
	st    *varve.Store
	limit int64
	bad   func(error)
	clock func() time.Time

	mu     sync.RWMutex
	loaded bool
	from   uint64 // where the store's changes go on
	bytes  int64  // about what it takes
	byID   map[string]*entity
	edges  map[string]*relation            // by id
	ends   map[string]map[string]*relation // by the name at either end, then by id
	order  []*entity
	lines  []*relation
	large  int64 // of memories when the graph was found to be too large; 0: it was not
}

// with calls f with the graph as of now or later.
func (v *view) with(ctx context.Context, f func(nodes) error) error {
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
	if !v.loaded { // another call has found it too large meanwhile
		return f(scan{v.st, v.bad})
	}
	return f(held{v, v.clock()})
}

// refresh takes up what was committed since; false where the graph is too large.
func (v *view) refresh(ctx context.Context) (small bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for range 3 {
		if !v.loaded {
			if small, err := v.load(ctx); err != nil || !small {
				return small, err
			}
		}
		err = v.catchUp(ctx)
		if err == nil {
			return v.loaded, nil
		}
		v.drop()
		if !errors.Is(err, varve.ErrTruncated) {
			return false, err
		}
	}
	return false, nil // the log is released faster than the graph is read
}

// load reads all of the graph.
func (v *view) load(ctx context.Context) (small bool, err error) {
	if v.large > 0 {
		n, err := v.st.Count(ctx)
		if err != nil || n > v.large/2 {
			return false, err
		}
	}
	v.drop()
	v.byID, v.edges, v.ends = map[string]*entity{}, map[string]*relation{}, map[string]map[string]*relation{}
	v.from = v.st.Stats().Durable
	all := scan{v.st, v.bad}
	ctx, full := context.WithCancelCause(ctx)
	defer full(nil)
	add := func(m *varve.Memory) {
		if v.put(m); v.bytes > v.limit {
			full(errLarge)
		}
	}
	err = errors.Join(all.each(ctx, graph.EntityPrefix, add), all.each(ctx, graph.RelationPrefix, add))
	switch {
	case errors.Is(context.Cause(ctx), errLarge):
		v.drop()
		v.large = max(1, v.st.Stats().Memories)
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

var errLarge = errors.New("the graph is larger than what may be kept of it")

func (v *view) drop() {
	v.loaded, v.from, v.bytes = false, 0, 0
	v.byID, v.edges, v.ends, v.order, v.lines = nil, nil, nil, nil, nil
}

func (v *view) catchUp(ctx context.Context) error {
	for c, err := range v.st.Changes(ctx, v.from) {
		if err != nil && c.Next == 0 {
			return err
		}
		v.from = c.Next
		if c.Kind != "memory" || !graph.IsID(c.ID) {
			continue
		}
		if err != nil {
			v.bad(err)
		}
		v.remove(c.ID)
		if err == nil && !c.Deleted {
			v.put(&c.Memory)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if v.bytes > v.limit {
		v.drop()
		v.large = max(1, v.st.Stats().Memories)
	}
	return nil
}

// What an entry takes beside its texts, about.
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

func (v *view) put(m *varve.Memory) {
	if e := entityOf(m); e != nil {
		v.byID[e.id] = e
		i := len(v.order)
		if v.loaded { // else it is sorted when all are there
			i, _ = slices.BinarySearchFunc(v.order, e, byAge[*entity])
		}
		v.order = slices.Insert(v.order, i, e)
		v.bytes += e.size()
	} else if r := relationOf(m); r != nil {
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

// held are the nodes of a view that is held still.
type held struct {
	v   *view
	now time.Time
}

func (h held) entities(ctx context.Context, f func(*entity)) error {
	for i, e := range h.v.order {
		if i&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !e.gone(h.now) {
			f(e)
		}
	}
	return nil
}

func (h held) relations(_ context.Context, f func(*relation)) error {
	for _, r := range h.v.lines {
		if !r.gone(h.now) {
			f(r)
		}
	}
	return nil
}

func (h held) named(_ context.Context, name string) (*entity, error) {
	e := h.v.byID[graph.EntityID(name)]
	if e == nil || e.gone(h.now) {
		return nil, nil
	}
	return e, nil
}

func (h held) touching(_ context.Context, names map[string]bool, f func(*relation)) error {
	seen := map[string]bool{}
	for name := range names {
		for id, r := range h.v.ends[name] {
			if !seen[id] && !r.gone(h.now) {
				seen[id] = true
				f(r)
			}
		}
	}
	return nil
}
