package commit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/wal"
)

// Committer turns operations into batches of log entries, with all other changes that belong to them, and
// appends them.
type Committer struct {
	engine  *engine.Engine
	vectors *vectors.Vectors
	counts  *counts.Counts
	pace    Pace
	host    Host
	clock   Clock
	works   sync.Pool // unused values of type *work
	turns   turns
	embeds  bool // puts may call an embedder
	fit     bool // cut or pad an embedding whose dimension is not the store's
}

// Host is the interface through which a Committer asks the embedder. The embedder is in a package that imports this
// one.
type Host interface {
	// Suits returns an error if the embedder's vectors may not be stored while the store has the given
	// embedding model.
	Suits(model *index.Model) error
}

// Config has the options of New.
type Config struct {
	Clock  Clock // decides whether a document that has expired may be replaced
	Embeds bool  // puts may call an embedder
	Fit    bool  // cut or pad an embedding whose dimension is not the store's
}

// New returns a Committer. pace is the flusher: it slows down commits while the document files are far behind
// the log, and each commit wakes it. host is the embedder: it decides whether vectors that it made may still
// be stored.
func New(eng *engine.Engine, vs *vectors.Vectors, cs *counts.Counts, pace Pace, host Host, c Config) *Committer {
	return &Committer{engine: eng, vectors: vs, counts: cs, pace: pace, host: host,
		clock: c.Clock, embeds: c.Embeds, fit: c.Fit}
}

// Clock is a clock that does not jump ahead when the system clock is set; it is implemented by *scopes.Scopes.
type Clock interface {
	Now() (now, doubted time.Time)
}

// ConfirmExpired returns nil if a document that has expired by the system clock has also expired by the clock c. If
// not, the error is a *errs.ConflictError: the system clock may have been set ahead, and a write must not treat the
// document as missing for that reason alone. version is the newest version of the document, and expires is the time at
// which it expires.
func ConfirmExpired(c Clock, id string, version wal.LSN, expires time.Time) error {
	if now, _ := c.Now(); !now.Before(expires) {
		return nil
	}
	return &errs.ConflictError{ID: id, Found: version, Remedy: fmt.Sprintf("the document expires at %s, and the "+
		"clock was set ahead while the machine was running: correct the clock", expires.UTC().Format(time.RFC3339))}
}

// Pace is the interface of the flusher for writers: the flusher slows writers down, and writers wake the flusher.
type Pace interface {
	Pressure(ctx context.Context, bytes func() int64) error // slows a writer while the files are far behind the log
	// records that this process is alive, in a store opened without background goroutines
	BeatInline()
	RoundInline(ctx context.Context)
	Wake(changes int) // receives the number of committed changes
}

// work holds the buffers that a commit needs while it runs. Committer reuses works; each belongs to one commit at a
// time.
type work struct {
	batch    wal.Batch
	prepared []prepared
	along    along
	arenas   []*arena           // arenas for the prepared values, one for each goroutine
	taken    []counts.Candidate // the memories that this commit evicts to make room
	turn     counts.Turn        // turn to evict memories, held until this commit ends
	kept     int                // number of copies of replaced versions, which are the first entries of the batch
	swaps    uint64             // value of State.Swaps before the batch is appended
}

// The sizes up to which the buffers of a commit are kept for reuse: a larger batch is rare, and must not keep memory
// allocated.
const (
	keptOps   = 4096
	keptBytes = 4 << 20
)

func (cm *Committer) work() *work {
	if w, ok := cm.works.Get().(*work); ok {
		return w
	}
	return &work{}
}

// recycle keeps the buffers of a commit for reuse if the log has already applied the commit's entries. Otherwise
// recycle drops the buffers.
func (cm *Committer) recycle(w *work) {
	if w.clear(cm.engine.Log().Applied()) {
		cm.works.Put(w)
	}
}

// clear clears the buffers of a commit and reports whether they may be reused. It returns false while the log still has
// to apply the commit's entries, which point into these buffers. applied is the position up to which the log has been
// applied.
func (w *work) clear(applied wal.LSN) bool {
	n := len(w.batch.Entries)
	if n > 0 && applied <= w.batch.Entries[n-1].LSN || n > keptOps {
		return false
	}
	clear(w.batch.Entries)
	clear(w.batch.Preconditions)
	clear(w.prepared)
	w.along, w.taken, w.turn, w.kept = along{}, nil, counts.NoTurn, 0
	w.batch = wal.Batch{Entries: w.batch.Entries[:0], Preconditions: w.batch.Preconditions[:0]}
	for _, a := range w.arenas {
		if cap(a.values) > keptBytes {
			a.values = nil
		}
		a.values = a.values[:0]
	}
	return true
}

// room returns a slice for the results of n operations.
func (w *work) room(n int) []prepared {
	if cap(w.prepared) < n {
		w.prepared = make([]prepared, n)
	}
	w.prepared = w.prepared[:n]
	return w.prepared
}

func (w *work) arena(k int) *arena {
	for len(w.arenas) <= k {
		w.arenas = append(w.arenas, &arena{})
	}
	return w.arenas[k]
}

// arena stores encoded values one after the other in a few large buffers.
type arena struct {
	values  []byte
	scratch []byte // buffer for one document and one line
	docs    bool   // the prepared documents are kept for the cache
}

// arenaChunk is the number of bytes that an arena allocates at once.
const arenaChunk = 256 << 10

// room returns an empty slice with capacity for a value of up to n bytes; keep adds the value to the arena.
func (a *arena) room(n int) []byte {
	used := len(a.values)
	if cap(a.values)-used < n {
		size := n
		if used > 0 {
			size = max(n, arenaChunk) // the values before keep the old memory alive
		}
		a.values, used = make([]byte, 0, size), 0
	}
	return a.values[used : used : used+n]
}

func (a *arena) keep(value []byte) {
	used := len(a.values)
	if end := used + len(value); end <= cap(a.values) && len(value) > 0 && &a.values[:end][used] == &value[0] {
		a.values = a.values[:end]
	}
}
