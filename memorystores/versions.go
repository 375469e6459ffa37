package memorystores

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/varve-db/varve"
)

// versionObject is the JSON of a version of a memory.
type versionObject struct {
	ID               string  `json:"id"`
	Type             string  `json:"type"`
	MemoryStoreID    string  `json:"memory_store_id"`
	MemoryID         string  `json:"memory_id"`
	Operation        string  `json:"operation"`
	Path             *string `json:"path"`
	Content          *string `json:"content"`
	ContentSHA256    *string `json:"content_sha256"`
	ContentSizeBytes *int64  `json:"content_size_bytes"`
	CreatedAt        string  `json:"created_at"`
	CreatedBy        *actor  `json:"created_by"`
	RedactedAt       *string `json:"redacted_at"`
	RedactedBy       *actor  `json:"redacted_by"`
}

// actor is the JSON that names the client that made a change.
type actor struct {
	Type      string `json:"type"`
	APIKeyID  string `json:"api_key_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	UserID    string `json:"user_id,omitempty"`
}

// actorOf returns the JSON for the writer of a version; nil if the writer is unknown.
func actorOf(w *varve.Writer) *actor {
	switch {
	case w.Token != "":
		return &actor{Type: "api_actor", APIKeyID: w.Token}
	case w.Session != "":
		return &actor{Type: "session_actor", SessionID: w.Session}
	case w.Agent != "":
		return &actor{Type: "user_actor", UserID: w.Agent}
	case w.Program != "":
		return &actor{Type: "user_actor", UserID: w.Program}
	}
	return nil
}

// listed is a version together with its writer. It is a copy, so that it can be used without holding the lock of the
// view.
type listed struct {
	version
	by *actor
}

func take(v version, writers []varve.Writer) listed {
	l := listed{version: v}
	if v.writer >= 0 {
		l.by = actorOf(&writers[v.writer])
	}
	return l
}

// shownVersion returns the JSON of a version. If full is true, the JSON includes the content.
func (h *handle) shownVersion(ctx context.Context, v *listed, full bool) (versionObject, error) {
	path := "/" + v.path
	o := versionObject{ID: versionString(v.lsn), Type: "memory_version", MemoryStoreID: h.id,
		MemoryID: v.memory.String(), Operation: v.what, CreatedAt: stamp(time.UnixMicro(v.time)), CreatedBy: v.by}
	ns := h.store.Notes()
	at, by, redacted, err := ns.Redaction(v.path, v.lsn)
	if err == nil && v.what == removed {
		o.Path = &path
		return o, nil
	}
	var document []byte
	if err == nil && !redacted && full {
		var whole varve.Version
		if whole, err = ns.GetAt(ctx, v.path, v.lsn); err != nil {
			var again error
			if at, by, redacted, again = ns.Redaction(v.path, v.lsn); again == nil && redacted {
				err = nil
			}
		}
		document = whole.Document
	}
	if err != nil {
		return o, err
	}
	if redacted {
		when := stamp(at)
		o.RedactedAt, o.RedactedBy = &when, actorOf(&by)
		return o, nil
	}
	hash := hex.EncodeToString(v.hash[:])
	o.Path, o.ContentSHA256, o.ContentSizeBytes = &path, &hash, &v.size
	if full {
		o.Content = text(document)
	}
	return o, nil
}

func listVersions(s *Stores, r *http.Request, _ Caller) (any, error) {
	q := parameters(r, "memory_id", "operation", "session_id", "api_key_id", "service_account_id", "created_at[gte]",
		"created_at[lte]", "limit", "page", "view")
	full := q.view(false)
	place, limit := q.page('v', full)
	from, to := q.times()
	before := ^uint64(0)
	if place != "" {
		var err error
		if before, err = strconv.ParseUint(place, 10, 64); err != nil {
			q.fail("page", "must be the next_page of an answer to the same request")
		}
	}
	operation := q.text("operation")
	if q.has("operation") && !slices.Contains([]string{created, modified, removed}, operation) {
		q.fail("operation", "must be created, modified or deleted")
	}
	of, known := parseMemory(q.text("memory_id"))
	if q.err != nil {
		return nil, q.err
	}
	passes := func(v *version, writers []varve.Writer) bool {
		at := time.UnixMicro(v.time)
		if q.has("memory_id") && (!known || v.memory != of) || operation != "" && v.what != operation ||
			!from.IsZero() && at.Before(from) || !to.IsZero() && at.After(to) {
			return false
		}
		if !q.has("session_id") && !q.has("api_key_id") && !q.has("service_account_id") {
			return true
		}
		by := take(*v, writers).by
		return by != nil && !q.has("service_account_id") &&
			(!q.has("session_id") || by.Type == "session_actor" && by.SessionID == q.text("session_id")) &&
			(!q.has("api_key_id") || by.Type == "api_actor" && by.APIKeyID == q.text("api_key_id"))
	}
	return s.withStore(r, func(ctx context.Context, h *handle, ns varve.Notes) (any, error) {
		var list []listed
		more := false
		purged := func(v *version) bool { // a purge since the version was read
			_, _, _, err := ns.Redaction(v.path, v.lsn)
			return errors.Is(err, varve.ErrNotFound)
		}
		if err := h.view.all(ctx, s, h, func(all []version, writers []varve.Writer) {
			end, _ := slices.BinarySearchFunc(all, version{lsn: before}, byPosition)
			for i := range slices.Backward(all[:end]) {
				if !passes(&all[i], writers) || purged(&all[i]) {
					continue
				}
				if more = len(list) == limit; more {
					break
				}
				list = append(list, take(all[i], writers))
			}
		}); err != nil {
			return nil, err
		}
		out := listing{Data: []any{}}
		for i := range list {
			o, err := h.shownVersion(ctx, &list[i], full)
			if errors.Is(err, varve.ErrNotFound) || errors.Is(err, varve.ErrTruncated) {
				o, err = h.shownVersion(ctx, &list[i], false) // it is not kept any more, as of now
			}
			if errors.Is(err, varve.ErrNotFound) {
				continue // purged just now
			}
			if err != nil {
				return nil, err
			}
			out.Data = append(out.Data, o)
		}
		if more {
			out.NextPage = page('v', strconv.FormatUint(list[limit-1].lsn, 10))
		}
		return out, nil
	})
}

var errNoVersion = refuse(http.StatusNotFound, "there is no such version in this store, or it is not kept any more")

// version returns the version with this id.
func (h *handle) version(ctx context.Context, s *Stores, id string) (listed, error) {
	lsn, ok := parseVersion(id)
	if !ok {
		return listed{}, errNoVersion
	}
	var v listed
	err := h.view.all(ctx, s, h, func(all []version, writers []varve.Writer) {
		var i int
		if i, ok = slices.BinarySearchFunc(all, version{lsn: lsn}, byPosition); ok {
			v = take(all[i], writers)
		}
	})
	if err == nil && !ok {
		err = errNoVersion
	}
	return v, err
}

func getVersion(s *Stores, r *http.Request, _ Caller) (any, error) {
	q := parameters(r, "view")
	full := q.view(true)
	if q.err != nil {
		return nil, q.err
	}
	return s.withStore(r, func(ctx context.Context, h *handle, _ varve.Notes) (any, error) {
		v, err := h.version(ctx, s, r.PathValue("version"))
		if err != nil {
			return nil, err
		}
		o, err := h.shownVersion(ctx, &v, full)
		if errors.Is(err, varve.ErrNotFound) || errors.Is(err, varve.ErrTruncated) {
			return nil, errNoVersion
		}
		if err == nil && full && o.Content == nil && o.ContentSizeBytes != nil && *o.ContentSizeBytes <= MostContent {
			return nil, errNotText
		}
		return o, err
	})
}

func redactVersion(s *Stores, r *http.Request, _ Caller) (any, error) {
	if q := parameters(r); q.err != nil {
		return nil, q.err
	}
	if err := noBody(r); err != nil {
		return nil, err
	}
	return s.withStore(r, func(ctx context.Context, h *handle, ns varve.Notes) (any, error) {
		v, err := h.version(ctx, s, r.PathValue("version"))
		if err != nil {
			return nil, err
		}
		if v.what == removed {
			return nil, refuse(http.StatusBadRequest, "the version records a deletion, and has no content")
		}
		_, err = ns.PurgeOneVersion(ctx, v.path, v.lsn)
		switch {
		case errors.Is(err, varve.ErrConflict):
			return nil, refuse(http.StatusBadRequest, "the version is the current one of its memory: update or delete the "+
				"memory first")
		case errors.Is(err, varve.ErrNotFound), errors.Is(err, varve.ErrTruncated):
			return nil, errNoVersion
		case err != nil:
			return nil, err
		}
		return h.shownVersion(ctx, &v, true)
	})
}
