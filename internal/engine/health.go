package engine

import (
	"context"
	"sync"
	"time"

	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
)

// health records the failures of background work, and the result of the flusher's last round.
type health struct {
	Mu      sync.Mutex
	At      time.Time
	Err     error
	Edits   int
	Space   space
	Vectors error // reason why the last round could not write the vectors, nil if it could
	Views   error // reason why the last round could not write the other views, nil if it could
	Told    map[string]telling
}

// telling is a problem that was reported about a file, and the state of the file at that time.
type telling struct {
	info vfs.Info
	Why  error
}

// Same reports whether the file is unchanged since the problem was reported.
func (t *telling) Same(info vfs.Info) bool {
	return t.info.Size == info.Size && t.info.Mtime.Equal(info.Mtime) && t.info.Ino == info.Ino
}

// Adoptions returns the number of edits by hand that this process has adopted or moved to quarantine.
func (h *health) Adoptions() int {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.Edits
}

// TellOnce reports whether the caller should report a problem of the file at path. It returns false if a problem
// was already reported for this state of the file, which info describes. Otherwise it returns true, and records
// the problem as reported.
func (h *health) TellOnce(path string, info vfs.Info, problem error) bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	was, ok := h.Told[path]
	if ok && was.Same(info) {
		return false
	}
	if h.Told == nil || len(h.Told) >= MaxProblems {
		h.Told = map[string]telling{}
	}
	h.Told[path] = telling{info, problem}
	return true
}

// VectorsFailed records the error because of which the flusher's last round could not write the vectors. err is nil if
// the round wrote them.
func (h *health) VectorsFailed(err error) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.Vectors = err
}

// Flushed records end, the time at which the flusher's last round ended, and the error of that round.
func (h *health) Flushed(end time.Time, err error) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.At, h.Err = end, err
}

// Edit counts an edit by hand that was adopted or moved to quarantine.
func (h *health) Edit() {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.Edits++
}

// opened records the findings of opening the store, and problems found since: see OpenReport of the root package.
type opened struct {
	Mu       sync.Mutex
	Remade   *remadeIndex // description of the rebuild of the index; nil: the index was not rebuilt
	Problems []error      // the first problems that were found
	Count    int
}

type remadeIndex struct {
	Why error
	// The older index from which, together with the log, the index was rebuilt; "" if it was rebuilt from the
	// files.
	From     string
	Memories int
}

// MaxProblems is the maximum number of problems, and of files with a reported problem, that are remembered.
const MaxProblems = 100

// NoteProblem records a problem of the store for Health.
func (eng *Engine) NoteProblem(err error) {
	o := &eng.opened
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if len(o.Problems) < MaxProblems {
		o.Problems = append(o.Problems, err)
	}
	o.Count++
}

// space records whether the disk was short of free space at the last check, and the time of that check. health.Mu
// guards it.
type space struct {
	At    time.Time
	Short bool
}

// ProblemsShown is the maximum number of problems of one kind that Health names.
const ProblemsShown = 3

// UpdateSettings changes config.json. The function change gets the present settings and modifies them; if it returns
// an error, nothing is changed. UpdateSettings takes flush.lock.
func (eng *Engine) UpdateSettings(ctx context.Context, change func(*settings.Config) error) error {
	held, err := eng.log.LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	return eng.settings.Update(held, change)
}
