package memorystores

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/settings"
)

// storeObject is the JSON of a memory store.
type storeObject struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Metadata    map[string]string `json:"metadata"`
	CreatedAt   string            `json:"created_at"`
	UpdatedAt   string            `json:"updated_at"`
	ArchivedAt  *string           `json:"archived_at"`
}

// deleted is the JSON of the answer to a deletion.
type deleted struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

func shownStore(c *settings.MemoryStoreConfig) storeObject {
	o := storeObject{ID: c.ID, Type: "memory_store", Name: c.Name, Description: c.Description,
		Metadata: map[string]string{}, CreatedAt: stamp(c.CreatedAt), UpdatedAt: stamp(c.UpdatedAt)}
	maps.Copy(o.Metadata, c.Metadata)
	if !c.ArchivedAt.IsZero() {
		at := stamp(c.ArchivedAt)
		o.ArchivedAt = &at
	}
	return o
}

func checked(c *settings.MemoryStoreConfig) error {
	if field, err := c.Check(); err != nil {
		return invalid(field, "%v", err)
	}
	return nil
}

func (s *Stores) now() time.Time { return s.o.Clock().UTC().Truncate(time.Microsecond) }

func createStore(s *Stores, r *http.Request, caller Caller) (any, error) {
	if s.one != nil {
		return nil, refuse(http.StatusForbidden, "this server serves one store: memctl serve --stores serves several")
	}
	if caller.Stores != nil {
		return nil, refuse(http.StatusForbidden, "the token permits only certain stores, so it cannot create a store")
	}
	var in struct {
		Name        *string           `json:"name"`
		Description *string           `json:"description"`
		Metadata    map[string]string `json:"metadata"`
	}
	if q := parameters(r); q.err != nil {
		return nil, q.err
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	if in.Name == nil {
		return nil, invalid("name", "required")
	}
	at := s.now()
	c := settings.MemoryStoreConfig{ID: newStoreID(), Name: *in.Name, Metadata: in.Metadata, CreatedAt: at, UpdatedAt: at}
	if in.Description != nil {
		c.Description = *in.Description
	}
	if err := checked(&c); err != nil {
		return nil, err
	}
	if err := s.create(r.Context(), c); err != nil {
		return nil, err
	}
	return shownStore(&c), nil
}

func listStores(s *Stores, r *http.Request, caller Caller) (any, error) {
	q := parameters(r, "limit", "page", "include_archived", "created_at[gte]", "created_at[lte]")
	place, limit := q.page('s', false)
	archived := q.flag("include_archived")
	from, to := q.times()
	at, id, ok := strings.Cut(place, " ")
	before, err := strconv.ParseInt(at, 10, 64)
	if place != "" && (!ok || err != nil) {
		q.fail("page", "must be the next_page of an answer to the same request")
	}
	if q.err != nil {
		return nil, q.err
	}
	list, err := s.described(r.Context())
	if err != nil {
		return nil, err
	}
	out := listing{Data: []any{}}
	for i := range list {
		c := &list[i]
		created := c.CreatedAt.UnixMicro()
		switch {
		case place != "" && (created > before || created == before && c.ID <= id),
			!archived && !c.ArchivedAt.IsZero(), !from.IsZero() && c.CreatedAt.Before(from),
			!to.IsZero() && c.CreatedAt.After(to), caller.Stores != nil && !slices.Contains(caller.Stores, c.ID):
			continue
		}
		if len(out.Data) == limit {
			last := out.Data[limit-1].(storeObject)
			at, _ := time.Parse(time.RFC3339, last.CreatedAt)
			out.NextPage = page('s', number(at.UnixMicro())+" "+last.ID)
			break
		}
		out.Data = append(out.Data, shownStore(c))
	}
	return out, nil
}

// described returns the descriptions of all stores, the newest first.
func (s *Stores) described(ctx context.Context) ([]settings.MemoryStoreConfig, error) {
	if s.one == nil {
		return s.all(ctx)
	}
	h, err := s.use(ctx, "")
	if err != nil {
		return nil, err
	}
	defer s.release(h)
	return []settings.MemoryStoreConfig{*h.config()}, nil
}

// config returns the description of an open store, from its config.json.
func (h *handle) config() *settings.MemoryStoreConfig {
	if c := h.store.Admin().Config().MemoryStore; c != nil {
		return (*settings.MemoryStoreConfig)(c)
	}
	return &settings.MemoryStoreConfig{ID: h.id, Name: h.id}
}

func getStore(s *Stores, r *http.Request, _ Caller) (any, error) {
	if q := parameters(r); q.err != nil {
		return nil, q.err
	}
	id := r.PathValue("store")
	if s.one == nil { // it need not be opened
		f, err := s.find(r.Context(), id)
		if err != nil {
			return nil, err
		}
		return shownStore(&f.config), nil
	}
	h, err := s.use(r.Context(), id)
	if err != nil {
		return nil, err
	}
	defer s.release(h)
	return shownStore(h.config()), nil
}

// describe changes the description of the store of h, and returns the new description for the client. The function
// change edits the description; it returns false if there is nothing to change.
func (s *Stores) describe(ctx context.Context, h *handle,
	change func(c *settings.MemoryStoreConfig) (bool, error)) (any, error) {
	var is settings.MemoryStoreConfig
	err := h.store.Admin().UpdateConfig(ctx, func(all *varve.Config) error {
		if all.MemoryStore == nil {
			return fmt.Errorf("config.json has no memory_store any more: %w", errNoStore)
		}
		is = settings.MemoryStoreConfig(*all.MemoryStore)
		is.Metadata = maps.Clone(is.Metadata)
		changed, err := change(&is)
		if err == nil {
			err = checked(&is)
		}
		if err == nil && changed {
			is.UpdatedAt = s.now()
			all.MemoryStore = (*varve.MemoryStoreConfig)(&is)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return shownStore(&is), nil
}

func updateStore(s *Stores, r *http.Request, _ Caller) (any, error) {
	var in struct {
		Name        *string            `json:"name"`
		Description *string            `json:"description"`
		Metadata    map[string]*string `json:"metadata"`
	}
	if q := parameters(r); q.err != nil {
		return nil, q.err
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	h, err := s.use(r.Context(), r.PathValue("store"))
	if err != nil {
		return nil, err
	}
	defer s.release(h)
	return s.describe(r.Context(), h, func(c *settings.MemoryStoreConfig) (bool, error) {
		if !c.ArchivedAt.IsZero() {
			return false, errArchived
		}
		was := *c
		was.Metadata = maps.Clone(c.Metadata)
		if in.Name != nil {
			c.Name = *in.Name
		}
		if in.Description != nil {
			c.Description = *in.Description
		}
		for key, value := range in.Metadata {
			if value == nil {
				delete(c.Metadata, key)
				continue
			}
			if c.Metadata == nil {
				c.Metadata = map[string]string{}
			}
			c.Metadata[key] = *value
		}
		return was.Name != c.Name || was.Description != c.Description || !maps.Equal(was.Metadata, c.Metadata), nil
	})
}

var errArchived = refuse(http.StatusBadRequest, "the memory store is archived: it can be read, and memories can be "+
	"deleted and versions redacted, but nothing is created or updated")

func archiveStore(s *Stores, r *http.Request, _ Caller) (any, error) {
	if q := parameters(r); q.err != nil {
		return nil, q.err
	}
	if err := noBody(r); err != nil {
		return nil, err
	}
	h, err := s.use(r.Context(), r.PathValue("store"))
	if err != nil {
		return nil, err
	}
	defer s.release(h)
	if err := h.writes.Acquire(r.Context(), mostWrites); err != nil { // behind those that are under way
		return nil, err
	}
	defer h.writes.Release(mostWrites)
	return s.describe(r.Context(), h, func(c *settings.MemoryStoreConfig) (bool, error) {
		if !c.ArchivedAt.IsZero() {
			return false, nil
		}
		c.ArchivedAt = s.now()
		return true, nil
	})
}

// writing begins a write to the memories of a store, and returns an error if the store is archived. The caller
// must call end.
func (h *handle) writing(ctx context.Context) (end func(), err error) {
	if err := h.writes.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	end = func() { h.writes.Release(1) }
	if !h.config().ArchivedAt.IsZero() {
		end()
		return nil, errArchived
	}
	return end, nil
}

func deleteStore(s *Stores, r *http.Request, _ Caller) (any, error) {
	if q := parameters(r); q.err != nil {
		return nil, q.err
	}
	if err := noBody(r); err != nil {
		return nil, err
	}
	id := r.PathValue("store")
	if s.one != nil {
		return nil, refuse(http.StatusForbidden, "this server serves one store, which this API cannot delete")
	}
	if err := s.remove(r.Context(), id); err != nil {
		return nil, err
	}
	return deleted{id, "memory_store_deleted"}, nil
}
