package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/working"
)

// Working opens the working memory of a scope in this store: see package working.
// It is durable, and shared by all who have the store open. nil options are the
// zero ones.
func (st *Store) Working(ctx context.Context, scope working.Scope, o *working.Options) (*working.Memory, error) {
	return working.Open(ctx, st.WorkingHome(), scope, o)
}

// WorkingHome is the store as the home of working memory, for working.Open and
// working.NewSessions. Closing it leaves the store open.
func (st *Store) WorkingHome() working.Home { return &workingHome{st: st} }

type workingHome struct {
	st     *Store
	closed atomic.Bool
}

// Name is "store".
func (h *workingHome) Name() string { return "store" }

// begin is called at the start of everything; st.ended at its end.
func (h *workingHome) begin(ctx context.Context) error {
	if h.closed.Load() {
		return errs.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.st.engine.Begun()
}

// Do carries out one operation.
func (h *workingHome) Do(ctx context.Context, r *working.Request) (working.Result, error) {
	if err := h.begin(ctx); err != nil {
		return working.Result{}, err
	}
	defer h.st.engine.Ended()
	res, err := h.st.work1(ctx, r)
	if err != nil {
		err = h.st.engine.Env.Explain(err)
	}
	return res, err
}

func (st *Store) work1(ctx context.Context, r *working.Request) (working.Result, error) {
	// Whoever opens a scope that is there has nothing to write.
	_, attaches := r.Op.(working.OpAttach)
	reads := !working.Writes(r.Op)
	if !reads && !attaches || attaches && !st.engine.Env.ReadOnly {
		if err := st.engine.Writable(); err != nil {
			return working.Result{}, err
		}
	}
	s := st.working.acquire(st, r.Scope)
	defer st.working.release(s)
	if reads || attaches {
		res, ok, err := s.read(ctx, r)
		if ok || err != nil {
			return res, err
		}
		if st.engine.Env.ReadOnly {
			return working.Result{}, errs.ErrReadOnly
		}
	}
	return s.write(ctx, r)
}

// Scopes lists the scopes: those that have a file, and those that have none yet.
func (h *workingHome) Scopes(ctx context.Context) iter.Seq2[working.Scope, error] {
	return func(yield func(working.Scope, error) bool) {
		if err := h.begin(ctx); err != nil {
			yield(working.Scope{}, err)
			return
		}
		defer h.st.engine.Ended()
		keys, bad, err := h.st.workingKeys(ctx)
		if err != nil {
			yield(working.Scope{}, err)
			return
		}
		for _, err := range bad {
			if !yield(working.Scope{}, err) {
				return
			}
		}
		for _, key := range keys {
			scope, err := working.ParseScope(key)
			if err == nil {
				err = ctx.Err()
			}
			if !yield(scope, err) || err != nil {
				return
			}
		}
	}
}

// Release frees what this process holds of a scope.
func (h *workingHome) Release(ctx context.Context, scope working.Scope) error {
	if err := h.begin(ctx); err != nil {
		return err
	}
	defer h.st.engine.Ended()
	h.st.working.forget(scope.Key())
	return nil
}

// Check asks whether operations would be carried out.
func (h *workingHome) Check(ctx context.Context) error {
	if err := h.begin(ctx); err != nil {
		return err
	}
	defer h.st.engine.Ended()
	if err := h.st.engine.Sight(ctx); err != nil {
		return err
	}
	if h.st.engine.Env.ReadOnly {
		return nil
	}
	return h.st.engine.Writable()
}

// Close closes this handle; the store stays open.
func (h *workingHome) Close() error {
	h.closed.Store(true)
	return nil
}

// workingKeys lists the keys of all scopes, sorted, and what is wrong with files of
// which it cannot be told whose they are.
func (st *Store) workingKeys(ctx context.Context) (keys []string, bad []error, err error) {
	var last error
	for range engine.FindTries {
		if err := st.engine.Sight(ctx); err != nil {
			return nil, nil, err
		}
		keys, bad, err := st.listWorking(ctx)
		if err == nil {
			return keys, bad, nil
		}
		if !errors.Is(err, errs.ErrTruncated) {
			return nil, nil, err
		}
		last = err
		_ = st.engine.Refresh()
	}
	return nil, nil, fmt.Errorf("listing scopes: the log is released faster than it can be read: %w", last)
}

func (st *Store) listWorking(ctx context.Context) (keys []string, bad []error, err error) {
	there := map[string]bool{}
	// The overlay first: what leaves it meanwhile has its file by then.
	r := st.engine.Log.Reader()
	for _, at := range st.engine.State.Changes(0, 1<<62) {
		e, err := r.At(ctx, at.Pos)
		if err != nil {
			return nil, nil, err
		}
		if e.Key[0] == record.Working {
			there[strings.Clone(e.Key[1:])] = !e.Delete
		}
	}
	names, err := st.engine.Kinds.Scopes.Names()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, st.engine.Env.IOError("reading", st.engine.Kinds.Scopes.Path(""), err)
	}
	named := map[string]bool{}
	for key := range there {
		named[docfile.FileName(key)] = true
	}
	for _, name := range names {
		if !strings.HasSuffix(name, docfile.Extension) || named[name] {
			continue
		}
		if key, ok := st.working.names.Load(name); ok { // it was in the folder a moment ago
			there[key.(string)] = true
			continue
		}
		key, err := st.scopeOf(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		there[key] = true
	}
	st.working.names.Range(func(name, key any) bool {
		if !there[key.(string)] {
			st.working.names.Delete(name)
		}
		return true
	})
	return sortedTrue(there), bad, nil
}
