package flush

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// refusals has the invalid entries of the log, which are skipped: see state.Check. The store itself never writes such
// an entry, but a log that was copied from elsewhere may have any number of them. Each entry is reported once, and is
// copied to quarantine before a flush releases the entry from the log.
type refusals struct {
	mu   sync.Mutex
	list map[wal.LSN]*refusal
	more int // number of invalid entries beyond the maximum length of the list
}

type refusal struct {
	err  error
	kept bool // the entry is in quarantine
}

// refusedMost is the maximum number of invalid log entries that are reported and copied to quarantine. The command
// verify names all of them.
const refusedMost = 1000

// NoteRefused records that a log entry is invalid because of err. It is called by state.State.
func (fl *Flusher) NoteRefused(e *wal.Entry, err error) {
	r := &fl.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list[e.LSN] != nil {
		return // read again, with newer views
	}
	if len(r.list) >= refusedMost {
		r.more++
		return
	}
	if r.list == nil {
		r.list = map[wal.LSN]*refusal{}
	}
	r.list[e.LSN] = &refusal{err: err}
	fl.engine.NoteProblem(err)
	fl.engine.Env().Logger.Error("skipped an invalid entry of the log: run memctl verify", "lsn", e.LSN,
		"err", err)
	// the log may still be opening
	fl.engine.Env().Event(env.Event{Kind: env.EventCorruption, Path: "wal", LSN: e.LSN, Err: err})
}

// refusedEntries returns an error for each of the first engine.ProblemsShown invalid log entries that this process has
// found. If there are more, it adds one error with their number.
func (fl *Flusher) refusedEntries() (problems []error) {
	r := &fl.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.list) + r.more
	for _, at := range slices.Sorted(maps.Keys(r.list)) {
		if len(problems) == engine.ProblemsShown {
			problems = append(problems, fmt.Errorf("%s not valid: run memctl verify",
				human.Count(int(n-engine.ProblemsShown), "more entry of the log is", "more entries of the log are")))
			break
		}
		problems = append(problems, r.list[at].err)
	}
	return problems
}

// keepRefused copies the invalid log entries below the position end to quarantine, because the log may release
// them afterwards. If an entry cannot be copied, the round continues: the log still has the entry for now, and
// verify reports it.
func (fl *Flusher) keepRefused(ctx context.Context, _ *wal.Held, end wal.LSN) {
	r := &fl.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	q := docfile.NewQuarantine(fl.engine.Layout(), fl.engine.Env().Clock)
	for _, at := range slices.Sorted(maps.Keys(r.list)) {
		if ctx.Err() != nil || at >= end {
			return
		}
		if r.list[at].kept {
			continue
		}
		e, err := fl.engine.Log().ReadAt(ctx, at)
		if err == nil {
			_, err = q.Bytes(fmt.Sprintf("entry-%d.bin", at), e.Value, docfile.Note{
				Why: r.list[at].err.Error(), When: fl.engine.Env().Clock().UTC(),
				From: "wal/" + segment.Name(fl.engine.Log().Past().SegmentOf(at)),
				ID:   strings.ToValidUTF8(e.Key[min(1, len(e.Key)):], "\ufffd"), Version: at,
			})
		}
		if err != nil && !errors.Is(err, errs.ErrTruncated) {
			fl.engine.Env().Logger.Warn("copying an invalid entry of the log to quarantine failed", "lsn", at, "err",
				err)
			continue
		}
		r.list[at].kept = true
	}
}

// Problems returns the errors of the last rounds, and errors for the log entries that no round can process: see
// refusedEntries.
func (fl *Flusher) Problems() (list []error) {
	h := fl.engine.Health()
	h.Mu.Lock()
	if h.Err != nil {
		list = append(list, fmt.Errorf("the last flush failed: %w", h.Err))
	}
	if h.Vectors != nil {
		list = append(list, fmt.Errorf("the vectors are behind the log: %w", h.Vectors))
	}
	if h.Views != nil {
		list = append(list, h.Views)
	}
	h.Mu.Unlock()
	return append(list, fl.refusedEntries()...)
}
