package worklog

import (
	"strings"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// Work decodes e, a log entry about working memory. Fresh is set in the result also if e deletes its key.
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

// Begins reports whether w has the whole state of its scope of working memory, so that no earlier entry is
// needed.
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

// Base returns the log position up to which the scope's file is current; 0 if the file belongs to another
// store.
func (r *Replay) Base() wal.LSN {
	if r.File == nil || r.File.Store != r.Store {
		return 0
	}
	return r.File.LSN
}

// Play applies a log entry that the scope's file does not include yet, and skips one that it includes.
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
