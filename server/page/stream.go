package page

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/server"
)

// beat is the interval at which a stream sends an empty line, so that a dead connection is noticed.
const beat = 10 * time.Second

// event is one line of the stream of changes.
type event struct {
	Kind    string `json:"kind,omitempty"`
	ID      string `json:"id,omitempty"`
	Deleted bool   `json:"deleted,omitempty"`
	By      string `json:"by,omitempty"`
	Version uint64 `json:"version,omitempty"`
	Beat    bool   `json:"beat,omitempty"`
	Ended   string `json:"ended,omitempty"` // reason why the stream ends
}

// stream sends a line for each change that is made from now on. It ends when the client or the server ends the request.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	if t := server.TokenOf(r.Context()); t == nil || !t.Page {
		http.Error(w, "a token that permits the page is required: make one with memctl serve token add NAME --page",
			http.StatusUnauthorized)
		return
	}
	st, err := p.o.Store.Acquire(r.Context())
	if err != nil {
		_, next := remedyOf(err)
		http.Error(w, err.Error()+" → "+next, http.StatusServiceUnavailable)
		return
	}
	defer p.o.Store.Release(st)
	c := http.NewResponseController(w)
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("X-Accel-Buffering", "no") // of a proxy
	var mu sync.Mutex
	say := func(e event) bool {
		mu.Lock()
		defer mu.Unlock()
		_ = c.SetWriteDeadline(time.Now().Add(beat)) // a client that does not read; not every writer has deadlines
		b, err := json.Marshal(e)
		if err == nil {
			_, err = w.Write(append(b, '\n'))
		}
		return err == nil && c.Flush() == nil
	}
	if !say(event{Beat: true}) {
		return
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				say(event{Beat: true})
			}
		}
	}()
	defer func() { close(done); <-ended }() // w must not be used when the handler has returned
	for change, err := range st.Watch(r.Context(), varve.FromNow) {
		if r.Context().Err() != nil {
			return
		}
		if err != nil {
			if change.LSN == 0 {
				_, next := remedyOf(err)
				say(event{Ended: err.Error() + " → " + next})
				return
			}
			continue
		}
		if !say(event{Kind: change.Kind, ID: change.ID, Deleted: change.Deleted, Version: change.LSN,
			By: writtenBy(change.Writer, change.Cause)}) {
			return
		}
	}
}
