package scopes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/working"
)

// Home makes a store's working memory available as a working.Home. Closing the Home leaves the store open.
type Home struct {
	ws     *Scopes
	closed atomic.Bool
}

// NewHome returns a Home over ws.
func NewHome(ws *Scopes) *Home { return &Home{ws: ws} }

// Name returns "store".
func (h *Home) Name() string { return "store" }

// begin marks the start of an operation on the store. Every operation calls begin first, and Engine.EndUse at its end.
func (h *Home) begin(ctx context.Context) error {
	if h.closed.Load() {
		return errs.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.ws.engine.BeginUse()
}

// Do carries out one operation on working memory.
func (h *Home) Do(ctx context.Context, r *working.Request) (working.Result, error) {
	if err := h.begin(ctx); err != nil {
		return working.Result{}, err
	}
	defer h.ws.engine.EndUse()
	res, err := h.ws.Do(ctx, r)
	if err != nil {
		err = h.ws.engine.Env().Explain(err)
	}
	return res, err
}

// Do carries out one operation on working memory.
func (ws *Scopes) Do(ctx context.Context, r *working.Request) (working.Result, error) {
	// Opening an existing scope writes nothing.
	_, attaches := r.Op.(working.OpAttach)
	reads := !working.Writes(r.Op)
	if !reads && !attaches || attaches && !ws.engine.Env().ReadOnly {
		if err := ws.engine.Writable(); err != nil {
			return working.Result{}, err
		}
	}
	s := ws.acquire(r.Scope)
	defer ws.release(s)
	if reads || attaches {
		res, ok, err := s.read(ctx, r)
		if ok || err != nil {
			return res, err
		}
		if ws.engine.Env().ReadOnly {
			return working.Result{}, errs.ErrReadOnly
		}
	}
	return s.write(ctx, &asked{r: r})
}

// DropBare drops the scope sc for a purge: it does not copy the scope's document into the log first.
func (ws *Scopes) DropBare(ctx context.Context, sc working.Scope) error {
	s := ws.acquire(sc)
	defer ws.release(s)
	_, err := s.write(ctx, &asked{r: &working.Request{Scope: sc, Op: working.OpDrop{}}, bare: true})
	return err
}

// Scopes lists all scopes of working memory, including those that have no file yet.
func (h *Home) Scopes(ctx context.Context) iter.Seq2[working.Scope, error] {
	return func(yield func(working.Scope, error) bool) {
		if err := h.begin(ctx); err != nil {
			yield(working.Scope{}, err)
			return
		}
		defer h.ws.engine.EndUse()
		keys, bad, err := h.ws.Keys(ctx)
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

// Release frees the memory in which this process keeps a scope. The scope's data in the store is not affected.
func (h *Home) Release(ctx context.Context, scope working.Scope) error {
	if err := h.begin(ctx); err != nil {
		return err
	}
	defer h.ws.engine.EndUse()
	h.ws.forget(scope.Key())
	return nil
}

// Check returns the error that an operation would return now, or nil if operations are possible.
func (h *Home) Check(ctx context.Context) error {
	if err := h.begin(ctx); err != nil {
		return err
	}
	defer h.ws.engine.EndUse()
	if err := h.ws.engine.CatchUp(ctx); err != nil {
		return err
	}
	if h.ws.engine.Env().ReadOnly {
		return nil
	}
	return h.ws.engine.Writable()
}

// Close closes this handle; the store stays open.
func (h *Home) Close() error {
	h.closed.Store(true)
	return nil
}

// Keys returns the keys of all scopes, sorted, and one error for each file whose scope cannot be
// determined.
func (ws *Scopes) Keys(ctx context.Context) (keys []string, bad []error, err error) {
	var last error
	for range engine.FindTries {
		if err := ws.engine.CatchUp(ctx); err != nil {
			return nil, nil, err
		}
		keys, bad, err := ws.listWorking(ctx)
		if err == nil {
			return keys, bad, nil
		}
		if !errors.Is(err, errs.ErrTruncated) {
			return nil, nil, err
		}
		last = err
		_ = ws.engine.Refresh()
	}
	return nil, nil, fmt.Errorf("listing scopes: gave up, because the log is released faster than it can be read: %w",
		last)
}

func (ws *Scopes) listWorking(ctx context.Context) (keys []string, bad []error, err error) {
	there := map[string]bool{}
	// The overlay first: an entry that leaves the overlay meanwhile has its file by then.
	r := ws.engine.Log().Reader()
	for _, at := range ws.engine.State().Changes(0, 1<<62) {
		e, err := r.At(ctx, at.Pos)
		if err != nil {
			return nil, nil, err
		}
		if e.Key[0] == record.Working {
			there[strings.Clone(e.Key[1:])] = !e.Delete
		}
	}
	names, err := ws.engine.Kinds().Scopes.Names()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ws.engine.Env().IOError("reading", ws.engine.Kinds().Scopes.Path(""), err)
	}
	named := map[string]bool{}
	for key := range there {
		named[kind.Scopes.FileName(key)] = true
	}
	for _, name := range names {
		if !strings.HasSuffix(name, jsondoc.Extension) || named[name] {
			continue
		}
		if key, ok := ws.names.Load(name); ok { // the file's key is known from an earlier listing
			there[key.(string)] = true
			continue
		}
		key, err := ws.scopeOf(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		there[key] = true
	}
	ws.names.Range(func(name, key any) bool {
		if !there[key.(string)] {
			ws.names.Delete(name)
		}
		return true
	})
	return sortedTrue(there), bad, nil
}
