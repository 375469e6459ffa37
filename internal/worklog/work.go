package worklog

import (
	"strings"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// Work is what an entry of the log says of working memory.
func Work(codec *record.Codec, e *wal.Entry) (*working.LogEntry, record.View, error) {
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

// Begins reports whether an entry says all of its scope: nothing before it is needed.
func Begins(w *working.LogEntry) bool { return w.Fresh || w.State != nil }

// Replay plays what the log has of a scope on its file.
type Replay struct {
	Store string        // whose log it is, as files name it
	File  *working.File // nil: nothing of the scope was found yet
	// partial: what an entry changes is played also where what it was changed from is lost.
	Partial bool

	Played  bool
	Dropped bool // by the newest entry
}

// Base is up to where the file has what the log says: nothing of it where it is another store's.
func (r *Replay) Base() wal.LSN {
	if r.File == nil || r.File.Store != r.Store {
		return 0
	}
	return r.File.LSN
}

// Play carries an entry out that the file does not have.
func (r *Replay) Play(codec *record.Codec, e *wal.Entry) error {
	if e.LSN <= r.Base() {
		return nil
	}
	w, _, err := Work(codec, e)
	if err != nil {
		return err
	}
	if r.File == nil {
		if !r.Partial && !Begins(w) {
			return nil
		}
		of, err := working.ParseScope(strings.Clone(e.Key[1:]))
		if err != nil {
			return err
		}
		r.File = &working.File{Scope: of, State: working.NewState(), Store: r.Store}
	}
	r.File.State, r.File.LSN, r.File.Time = w.Play(r.File.State), e.LSN, e.Time
	r.Played, r.Dropped = true, e.Delete
	return nil
}
