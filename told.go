package varve

import (
	"sync"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// health is what the flusher has to say.
type health struct {
	mu      sync.Mutex
	at      time.Time
	err     error
	edits   int
	space   space
	vectors error // why the last round could not write them
	told    map[string]telling
}

// telling is a state of a file that was told of, and why it was.
type telling struct {
	info vfs.Info
	why  error
}

func (t *telling) same(info vfs.Info) bool {
	return t.info.Size == info.Size && t.info.Mtime.Equal(info.Mtime) && t.info.Ino == info.Ino
}

// adoptions counts what was taken over, by this process.
func (h *health) adoptions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.edits
}

// tellOnce says whether this state of a file is news.
func (h *health) tellOnce(path string, info vfs.Info, why error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, ok := h.told[path]
	if ok && was.same(info) {
		return false
	}
	if h.told == nil || len(h.told) >= maxProblems {
		h.told = map[string]telling{}
	}
	h.told[path] = telling{info, why}
	return true
}

func (h *health) vectorsFailed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.vectors = err
}

func (h *health) flushed(at time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.err = at, err
}

func (h *health) edit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.edits++
}

// opened is what was met since the store was opened: see Store.OpenReport.
type opened struct {
	mu       sync.Mutex
	remade   *remadeIndex // the index was made again
	problems []error      // the first of them
	count    int
}

type remadeIndex struct {
	why      error
	from     string // the older index that it was made from, with the log; "" when it was made from the files
	memories int
}

const maxProblems = 100

// problem remembers what is wrong with the store, and goes on.
func (eng *engine) problem(err error) {
	o := &eng.opened
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.problems) < maxProblems {
		o.problems = append(o.problems, err)
	}
	o.count++
}

// space is what was last seen of it; health.mu guards it.
type space struct {
	at    time.Time
	short bool
}
