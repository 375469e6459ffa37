package project

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"sync"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
)

// The members of metadata that this package owns.
const (
	Member       = "varve_project" // the id of the memory's project
	SupersededBy = "superseded_by" // the id of the memory that replaces this one
)

var idForm = regexp.MustCompile(`^prj-[0-9a-f]{32}$`)

// IsID reports whether a text has the form of the id of a project.
func IsID(s string) bool { return idForm.MatchString(s) }

// NewID returns the id of a new project, made of 16 random bytes.
func NewID(random [16]byte) string { return fmt.Sprintf("prj-%x", random) }

// Of returns the id of the project of a memory, or "" for a memory of the shared part.
func Of(m *varve.Memory) string {
	switch v := m.Metadata[Member].(type) {
	case nil:
		return ""
	case string:
		return v
	default: // an edit by hand: no project has this id
		return fmt.Sprintf("%v", v) + "\x00"
	}
}

// View is a store as one project sees it. It is safe for concurrent use.
type View struct {
	st      *varve.Store
	project string
	deleted *Deleted
}

// Deleted is a cache of the ids of deleted memories. It includes all deletions that the log still has. All views of a
// store share the cache.
type Deleted struct {
	mu  sync.Mutex
	to  uint64 // position up to which the log was read
	ids map[string]bool
}

// New returns the view of a project. If project is "", the view has only the shared part. deleted may be nil.
func New(st *varve.Store, project string, deleted *Deleted) *View {
	if deleted == nil {
		deleted = &Deleted{}
	}
	return &View{st: st, project: project, deleted: deleted}
}

// Project returns the id of the view's project. It returns "" if the view has only the shared part.
func (v *View) Project() string { return v.project }

// sees reports whether a memory is in the view.
func (v *View) sees(m *varve.Memory) bool {
	of := Of(m)
	return of == "" || of == v.project
}

// Shared reports whether a memory is in the part that all projects share.
func (v *View) Shared(m *varve.Memory) bool { return Of(m) == "" }

// Place sets the project of a memory that is about to be written to the project of the view. If shared is true, it
// removes the project, so that the memory is in the shared part.
func (v *View) Place(m *varve.Memory, shared bool) {
	if shared || v.project == "" {
		delete(m.Metadata, Member)
		return
	}
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	m.Metadata[Member] = v.project
}

func missing(id string) error {
	return fmt.Errorf("memory %s: %w", human.Quote(id), varve.ErrNotFound)
}

// Get returns the memory with this id, if it is in the view; otherwise the error is varve.ErrNotFound.
func (v *View) Get(ctx context.Context, id string) (varve.Memory, error) {
	m, err := v.st.Get(ctx, id)
	if err == nil && !v.sees(&m) {
		return varve.Memory{}, missing(id)
	}
	return m, err
}

// Memories yields the memories of the view that pass the filters, in the order of varve.Store.Memories. It omits the
// memories that other memories of the view override.
func (v *View) Memories(ctx context.Context, filters ...varve.Filter) iter.Seq2[varve.Memory, error] {
	return func(yield func(varve.Memory, error) bool) {
		o := v.overrides()
		for m, err := range v.All(ctx, filters...) {
			if err == nil && o.isOverridden(ctx, &m) {
				continue
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// All yields the same memories as Memories, and also those that other memories override.
func (v *View) All(ctx context.Context, filters ...varve.Filter) iter.Seq2[varve.Memory, error] {
	return func(yield func(varve.Memory, error) bool) {
		for m, err := range v.st.Memories(ctx, filters...) {
			if err == nil && !v.sees(&m) {
				continue
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// overrides determines which memories of the shared part are overridden. A memory is overridden if the project has a
// memory with the same key in the same session. An overrides is used for one call only.
type overrides struct {
	v     *View
	known map[[2]string]bool // cached results, by session and key
}

func (v *View) overrides() *overrides { return &overrides{v, map[[2]string]bool{}} }

func (o *overrides) isOverridden(ctx context.Context, m *varve.Memory) bool {
	if o.v.project == "" || m.Key() == "" || !o.v.Shared(m) {
		return false
	}
	at := [2]string{m.Session(), m.Key()}
	is, known := o.known[at]
	if known {
		return is
	}
	filters := []varve.Filter{varve.WithKey(m.Key())}
	if s := m.Session(); s != "" {
		filters = append(filters, varve.InSession(s))
	}
	for other, err := range o.v.st.Memories(ctx, filters...) {
		if err == nil && Of(&other) == o.v.project && other.Session() == m.Session() {
			is = true
			break
		}
	}
	o.known[at] = is
	return is
}

// Tx is a transaction whose reads and writes are limited to a view.
type Tx struct {
	v  *View
	tx *varve.Tx
}

// Transact is like varve.Store.Transact, but limits the transaction to the view.
func (v *View) Transact(ctx context.Context, f func(tx *Tx) error) error {
	return v.st.Transact(ctx, func(tx *varve.Tx) error { return f(&Tx{v, tx}) })
}

// Get returns the memory with this id, if it is in the view; otherwise the error is varve.ErrNotFound.
func (tx *Tx) Get(id string) (varve.Memory, error) {
	m, err := tx.tx.Get(id)
	if err == nil && !tx.v.sees(&m) {
		return varve.Memory{}, missing(id)
	}
	return m, err
}

// Put writes a memory, which must be in the view. It returns an error if the stored memory with this id is not in the
// view.
func (tx *Tx) Put(m varve.Memory) (varve.Memory, error) {
	if !tx.v.sees(&m) {
		return m, fmt.Errorf("memory %s is in another project: %w", human.Quote(m.ID), varve.ErrInvalid)
	}
	if m.ID != "" {
		if old, err := tx.tx.Get(m.ID); err == nil && !tx.v.sees(&old) {
			return m, fmt.Errorf("the id %s is already used → choose another id or key: %w", human.Quote(m.ID),
				varve.ErrConflict)
		}
	}
	return tx.tx.Put(m)
}

// Delete deletes a memory. If the view has no memory with this id, the error is varve.ErrNotFound.
func (tx *Tx) Delete(id string) error {
	if _, err := tx.Get(id); err != nil {
		return err
	}
	return tx.tx.Delete(id)
}

// AloneAmong does the same as varve.Tx.AloneAmong. It is not limited to the view.
func (tx *Tx) AloneAmong(matches func(id string, doc []byte) bool) error {
	return tx.tx.AloneAmong(matches)
}
