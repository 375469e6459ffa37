package repair

import (
	"strings"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// decodeWork is what an entry of the log says of working memory.
func decodeWork(codec *record.Codec, e *wal.Entry) (*working.LogEntry, record.View, error) {
	body, view, err := state.DocumentIn(codec, e, places.DocumentMost)
	if err != nil {
		return nil, view, err
	}
	w, err := working.DecodeLogEntry(view.Line, body)
	if err != nil {
		return nil, view, err
	}
	w.Fresh = w.Fresh || e.Delete // nothing is left of what was there before
	return w, view, nil
}

// begins says that an entry says all of its scope: nothing before it is needed.
func begins(w *working.LogEntry) bool { return w.Fresh || w.State != nil }

// replay plays what the log has of a scope on its file.
type replay struct {
	store string        // whose log it is, as files name it
	file  *working.File // nil: nothing of the scope was found yet
	// partial: what an entry changes is played also where what it was changed from is lost.
	partial bool

	played  bool
	dropped bool // by the newest entry
}

// base is up to where the file has what the log says: nothing of it where it is another store's.
func (r *replay) base() wal.LSN {
	if r.file == nil || r.file.Store != r.store {
		return 0
	}
	return r.file.LSN
}

// play carries an entry out that the file does not have.
func (r *replay) play(codec *record.Codec, e *wal.Entry) error {
	if e.LSN <= r.base() {
		return nil
	}
	w, _, err := decodeWork(codec, e)
	if err != nil {
		return err
	}
	if r.file == nil {
		if !r.partial && !begins(w) {
			return nil
		}
		of, err := working.ParseScope(strings.Clone(e.Key[1:]))
		if err != nil {
			return err
		}
		r.file = &working.File{Scope: of, State: working.NewState(), Store: r.store}
	}
	r.file.State, r.file.LSN, r.file.Time = w.Play(r.file.State), e.LSN, e.Time
	r.played, r.dropped = true, e.Delete
	return nil
}
