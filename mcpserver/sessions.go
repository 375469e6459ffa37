package mcpserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve"
)

// listSessions returns a page of the sessions; the cursor is the number of sessions before the
// page.
func (s *server) listSessions(ctx context.Context, cursor string, limit int) (*answer, error) {
	offset := 0
	if cursor != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(cursor, sessionCursor))
		if err != nil || n < 0 || !strings.HasPrefix(cursor, sessionCursor) {
			return nil, fmt.Errorf("cursor %q: must be next of the previous page", cursor)
		}
		offset = n
	}
	var all []varve.Session
	next, i := "", 0
	for session, err := range s.st.Sessions().All(ctx) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if !isOne(err) {
				return nil, err
			}
			s.o.Logger.Warn("listing sessions", "err", err)
			continue
		}
		if i++; i <= offset {
			continue
		}
		if len(all) == limit {
			next = fmt.Sprint(sessionCursor, offset+limit)
			break
		}
		all = append(all, session)
	}
	return answered(func(w *writer) {
		w.open('{')
		w.member("memories")
		w.open('[')
		w.close(']')
		w.member("sessions")
		list(w, all, (*writer).session)
		if next != "" {
			w.text("next", next)
		}
		w.close('}')
	}), nil
}

const sessionCursor = "sessions "

func (w *writer) session(s *varve.Session) {
	w.next()
	w.open('{')
	w.text("session", s.ID)
	w.number("count", float64(s.Memories))
	w.text("last_written", s.Last.Format(time.RFC3339))
	w.close('}')
}
