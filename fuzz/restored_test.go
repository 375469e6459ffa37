package fuzz

import (
	"slices"
	"time"

	varve "github.com/varve-db/varve"
)

// told returns the versions in a range that writers were told, each of a commit of its own.
func (h *history) told(from, to uint64) (list []uint64) {
	for _, w := range h.writes {
		if w.outcome == acked && w.batch == 0 && !w.del && w.version >= max(from, 1) && w.version <= to {
			list = append(list, w.version)
		}
	}
	return list
}

// restored compares a restored store with what was written: all of it is as it was at one moment of the
// backup, or at the requested version.
func (h *history) restored(st *varve.Store, r *copied, now func() time.Time) {
	began := now()
	held := map[string]string{}
	for m, err := range st.Memories(ctx) {
		if err != nil {
			h.bad("%s: %v", r.path, err)
			continue
		}
		w := h.tokens[tokenOf(m.Content)]
		if w == nil || m.ID != w.id || m.Content != content(w.token, w.size) || m.Session() != w.session || !m.ExpiresAt.Equal(w.expires) {
			h.bad("%s: %.20q is not what %v put", r.path, m.ID, w)
			continue
		}
		held[m.ID] = w.token
	}
	for _, id := range h.known() {
		expires := slices.ContainsFunc(h.writes, func(w *write) bool { return w.id == id && !w.expires.IsZero() })
		switch token := held[id]; {
		case token == "" && expires:
			// It may have existed, and have expired by now.
		case r.version == 0:
			h.seen = append(h.seen, observation{id: id, token: token, start: r.start, end: r.end, at: began, what: r.path})
		default:
			h.asOf(r, id, token)
		}
	}
}

// asOf checks that a memory can have had this value when a version was the newest.
func (h *history) asOf(r *copied, id, token string) {
	var at, newest *write // the commit of the moment; the newest of this memory that was acknowledged by then
	for _, w := range h.writes {
		if w.version == r.version {
			at = w
		}
		if w.id == id && w.outcome == acked && !w.del && w.version != 0 && w.version <= r.version && (newest == nil || w.version > newest.version) {
			newest = w
		}
	}
	deleted := func(after, before int) bool { // certainly, between two ticks
		return slices.ContainsFunc(h.writes, func(w *write) bool {
			return w.id == id && w.del && w.outcome == acked && w.start > after && w.end < before
		})
	}
	if token != "" {
		w := h.tokens[token]
		switch {
		case w.version > r.version:
			h.bad("%s: as of %d %.20q holds %v, which is newer", r.path, r.version, id, w)
		case newest != nil && w.version != 0 && w.version < newest.version:
			h.bad("%s: as of %d %.20q holds %v, not %v", r.path, r.version, id, w, newest)
		case w.outcome == acked && deleted(w.end, at.start):
			h.bad("%s: as of %d %.20q holds %v, which was deleted by then", r.path, r.version, id, w)
		}
		return
	}
	open := func(w *write) bool { // may it have been deleted?
		return w.id == id && w.del && w.outcome != refused && w.end > newest.start && w.start < at.end
	}
	if newest != nil && !slices.ContainsFunc(h.writes, open) {
		h.bad("%s: as of %d %.20q is not there, which %v put", r.path, r.version, id, newest)
	}
}
