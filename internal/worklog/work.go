package worklog

import (
	"strings"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// Work decodes the log entry e of working memory. If e deletes its key, Work sets Fresh in the result, because a
// deletion keeps nothing of the earlier state.
func Work(codec *record.Codec, e *wal.Entry) (*working.LogEntry, record.View, error) {
	body, view, err := state.DocumentIn(codec, e, places.DocumentMost)
	if err != nil {
		return nil, view, err
	}
	w, err := working.DecodeLogEntry(view.Line, body)
	if err != nil {
		return nil, view, err
	}
	w.Fresh = w.Fresh || e.Delete // a deletion leaves nothing of the earlier state
	return w, view, nil
}

// Begins reports whether the state of a scope of working memory can be computed from w without earlier entries: w
// discards the earlier state, or contains the whole state.
func Begins(w *working.LogEntry) bool { return w.Fresh || w.State != nil }

// Replay applies the log's entries of one scope of working memory to the state in the scope's file.
type Replay struct {
	Store string        // UUID of the store that owns the log, as files have it
	File  *working.File // nil: no state of the scope was found yet
	// Partial: apply entries even if the state on which they depend is lost.
	Partial bool

	Played  bool
	Dropped bool // the newest entry applied is a deletion
}

// Base returns the version of the scope's state in File: Play skips entries up to this position. It returns 0 if File
// is nil or belongs to another store.
func (r *Replay) Base() wal.LSN {
	if r.File == nil || r.File.Store != r.Store {
		return 0
	}
	return r.File.LSN
}

// Play applies the log entry e to the state in r.File. It skips e if the state already includes it. It also skips e if
// r.File is nil, r.Partial is false, and e depends on an earlier state (see Begins).
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
