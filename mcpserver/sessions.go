package mcpserver

import (
	"context"
	"maps"
	"slices"
	"time"
)

// held by a session.
type session struct {
	name  string
	count int
	last  time.Time
}

func (s *server) listSessions(ctx context.Context) (*answer, error) {
	all := map[string]*session{}
	for m, err := range s.st.Memories(ctx) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if !isOne(err) {
				return nil, err
			}
			s.o.Logger.Warn("listing", "err", err)
			continue
		}
		name := m.Session()
		if name == "" {
			continue
		}
		if all[name] == nil {
			all[name] = &session{name: name}
		}
		all[name].count++
		if m.UpdatedAt.After(all[name].last) {
			all[name].last = m.UpdatedAt
		}
	}
	return answered(func(w *writer) {
		w.open('{')
		w.member("memories")
		w.open('[')
		w.close(']')
		w.member("sessions")
		w.open('[')
		for _, name := range slices.Sorted(maps.Keys(all)) {
			w.next()
			w.open('{')
			w.text("session", name)
			w.number("count", float64(all[name].count))
			w.text("last_written", all[name].last.Format(time.RFC3339))
			w.close('}')
		}
		w.close(']')
		w.close('}')
	}), nil
}
